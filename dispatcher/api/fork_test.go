package api_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
)

func TestForkAndLog(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/tasks?wait=30s", `{"id":"one","input":"hi"}`, 200, nil)
	var page control.LogPage
	h.do("GET", "/v1/tasks/one/log?limit=1", "", 200, &page)
	if len(page.Entries) != 1 || !page.More {
		t.Errorf("%+v", page)
	}
	if e, err := page.Entries[0].Entry(); err != nil || e.Head.Kinds[0] != record.KindStarted {
		t.Errorf("%+v, %v", e, err)
	}
	var fork control.ForkReply
	header := h.do("POST", "/v1/tasks/one/fork", `{"at":1,"newId":"two"}`, 202, &fork)
	if fork.ID != "two" || fork.From.Run != "one" || header.Get("Location") != "/v1/tasks/two" {
		t.Errorf("%+v %v", fork, header)
	}
	for _, refused := range []struct {
		body  string
		code  int
		field string
	}{
		{`{"at":0}`, 400, "at"},
		{`{"at":9}`, 400, "at"},
		{`{"at":1,"agent":"unknown"}`, 400, "agent"},
		{`{"at":1,"agent":"default","revision":99}`, 400, "revision"},
		{`{"at":1,"model":"other","newId":"two"}`, 409, ""},
		{`{"at":1,"newId":"a.b"}`, 400, "newId"},
		{`{"at":1,"steps":2}`, 400, "steps"},
	} {
		var p messages.Problem
		h.do("POST", "/v1/tasks/one/fork", refused.body, refused.code, &p)
		if p.Field != refused.field {
			t.Errorf("%s: %+v", refused.body, p)
		}
	}
	h.do("POST", "/v1/tasks/none/fork", `{"at":1}`, 404, nil)
	h.do("GET", "/v1/tasks/none/log", "", 404, nil)
	h.do("GET", "/v1/tasks/one/log?after=x", "", 400, nil)
}

// A run and its fork are decided the same by the code that decided them. Clients get the same answer over NATS and HTTP.
func TestCheckByReplay(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/tasks?wait=30s", `{"id":"one","input":"hi"}`, 200, nil)
	h.do("POST", "/v1/tasks/one/fork", `{"at":1,"newId":"two"}`, 202, nil)
	client, err := h.dev.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	remote, err := dispatcher.NewHTTP(h.url, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"one", "two"} {
		run := dispatcher.Run(id)
		if _, err := client.Wait(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		got, err := client.Runs().Check(t.Context(), run)
		if err != nil || got.Decisions < 2 || got.Difference != nil || got.Version != "0.0.0" {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
		if all, overHTTP := entries(t, client, run), entries(t, remote, run); all < 2 || overHTTP != all {
			t.Errorf("%s: %d entries, over HTTP %d", id, all, overHTTP)
		}
		over, err := remote.Runs().Check(t.Context(), run)
		if diff := cmp.Diff(got, over); diff != "" || err != nil {
			t.Errorf("%s over HTTP: %v\n%s", id, err, diff)
		}
	}
	if _, err := remote.Runs().Check(t.Context(), dispatcher.Run("none")); !errors.Is(err, dispatcher.ErrNotFound) {
		t.Errorf("no run: %v", err)
	}
}

// entries counts those of a log.
func entries(t *testing.T, c *dispatcher.Client, run messages.Ref) (n int) {
	t.Helper()
	for _, err := range c.Runs().Log(t.Context(), run) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}
