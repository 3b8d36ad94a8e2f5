package api_test

import (
	"testing"

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
