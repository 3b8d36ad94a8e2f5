package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// Whatever a request says, its run or change is recorded under the owner of the key.
func TestNobodySubmitsForAnother(t *testing.T) {
	g := openGuarded(t)
	lie := []string{control.HeaderCaller, `{"who":"a liar"}`, "Longshore-By", "a liar"}
	submitter := slices.Concat(g.key("acme", control.RoleSubmitter), lie)
	operator := slices.Concat(g.key("acme", control.RoleOperator), lie)
	g.do("POST", "/v1/tasks?wait=30s", `{"id":"task","input":"hi","by":"a liar"}`, http.StatusOK, nil, submitter...)
	g.do("POST", "/v1/tasks/task/fork", `{"at":1,"newId":"fork"}`, http.StatusAccepted, nil, submitter...)
	g.do("PUT", "/v1/schedules/daily", `{"cron":"@daily","task":{"input":"hi","by":"a liar"}}`, http.StatusOK, nil, operator...)
	g.do("POST", "/v1/schedules/daily/run", ``, http.StatusAccepted, nil, operator...)
	resp := g.send("POST", "/v1/batches?id=b", `{"custom_id":"one","input":"hi","by":"a liar"}`+"\n", submitter...)
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, err)
	}
	const runs = 4
	by := map[string]string{}
	for deadline := time.Now().Add(30 * time.Second); len(by) < runs; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("only %v", by)
		}
		for e, err := range g.client.Runs().Recent(t.Context(), "acme", time.Now().Add(-time.Hour)) {
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(e.Data), "a liar") {
				t.Fatalf("%s: %s", e.Name(), e.Data)
			}
			var q messages.RunQueued
			if e.Name() == messages.EventRunQueued && json.Unmarshal(e.Data, &q) == nil {
				by[e.Ref().Run] = q.By
			}
		}
	}
	for run, who := range by {
		if !strings.HasPrefix(who, "key:") {
			t.Errorf("%s is by %q", run, who)
		}
	}
}
