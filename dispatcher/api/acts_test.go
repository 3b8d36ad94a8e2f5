package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/strict"
)

// told are the events of a name, as "tenant action target outcome", with who it was.
func (g *guarded) told(tenant string) (acts []string, who map[string]control.Acted) {
	g.t.Helper()
	who = map[string]control.Acted{}
	for e, err := range g.client.Runs().Recent(g.t.Context(), tenant, time.Now().Add(-time.Hour)) {
		if err != nil {
			g.t.Fatal(err)
		}
		if e.Name() != control.EventActed {
			continue
		}
		var a control.Acted
		if err := strict.Decode(e.Data, &a); err != nil {
			g.t.Fatal(err)
		}
		text := a.Action + " " + a.Target + " " + a.Outcome
		acts, who[text] = append(acts, text), a
	}
	return acts, who
}

// A change is announced once it is made, with the caller's name from the key, not from the request. A refusal is
// not.
func TestActsAreTold(t *testing.T) {
	g := openGuarded(t)
	admin, submitter := g.key(control.AllTenants, control.RoleAdmin), g.key("acme", control.RoleSubmitter)
	operator := g.key("acme", control.RoleOperator)
	by := append(slices.Clone(admin), "Longshore-By", "another")
	g.do("PUT", "/v1/quotas/tenant/acme", `{"maxQueued":5}`, http.StatusOK, nil, by...)
	g.do("PUT", "/v1/quotas/tenant/acme", `{"maxQueued":-5}`, http.StatusBadRequest, nil, by...)
	g.do("PUT", "/v1/schedules/daily", `{"cron":"@daily","task":{"input":"hi","by":"a liar"}}`, http.StatusOK, nil, operator...)
	g.do("DELETE", "/v1/schedules/daily", "", http.StatusOK, nil, operator...)
	g.do("POST", "/v1/tasks?wait=30s", `{"id":"r","input":"hi","by":"a liar"}`, http.StatusOK, nil, submitter...)
	if _, err := g.client.Fleet().Pause(t.Context(), queue.QuotaRef{Kind: queue.QuotaTenant, Name: "harbour"}, "ann", "a reason"); err != nil {
		t.Fatal(err)
	}
	if err := g.client.Index().Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	acts, who := g.told(messages.DefaultTenant)
	for _, want := range []string{"quotas.put tenant/acme done", "pause tenant/harbour done", "index_rebuild  done"} {
		if !slices.Contains(acts, want) {
			t.Errorf("%q is not in %q", want, acts)
		}
	}
	if n := len(slices.DeleteFunc(slices.Clone(acts), func(a string) bool { return !strings.HasPrefix(a, "keys.create ") })); n != 1 || len(acts) != 4 {
		t.Errorf("%q", acts) // the key for all tenants; the others are in their tenants
	}
	if a := who["quotas.put tenant/acme done"]; !strings.Contains(a.Who, "of *") && !strings.HasPrefix(a.Who, "key") || a.By == "another" || a.Remote != "127.0.0.1" {
		t.Errorf("%+v", a)
	}
	if a := who["pause tenant/harbour done"]; a.By != "ann" || a.Who != "" {
		t.Errorf("%+v", a)
	}
	acts, _ = g.told("acme")
	for _, want := range []string{"schedules.put daily done", "schedules.delete daily done"} {
		if !slices.Contains(acts, want) {
			t.Errorf("%q is not in %q", want, acts)
		}
	}
	for e, err := range g.client.Watch(t.Context(), messages.Ref{Tenant: "acme", Run: "r"}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Name() != messages.EventRunQueued {
			continue
		}
		var q messages.RunQueued
		if err := json.Unmarshal(e.Data, &q); err != nil || q.By == "" || q.By == "a liar" {
			t.Errorf("%+v %v", q, err)
		}
	}
}

// Without keys the task says who submits it.
func TestTaskSaysWho(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/tasks?wait=30s", `{"id":"r","input":"hello","by":"ann"}`, http.StatusOK, nil)
	client, err := h.dev.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range client.Watch(t.Context(), dispatcher.Run("r")) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Name() == messages.EventRunQueued && !strings.Contains(string(e.Data), `"by":"ann"`) {
			t.Errorf("%s", e.Data)
		}
	}
}
