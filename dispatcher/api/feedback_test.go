package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

func TestFeedback(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/tasks?wait=30s", `{"id":"r","input":"hi"}`, http.StatusOK, nil)
	before := h.until("r", messages.EventRunFinished)
	var first, again control.Feedback
	body := `{"score":-0.5,"comment":"Too long.","labels":{"kind":"style"},"step":1,"by":"ann"}`
	h.do("POST", "/v1/tasks/r/feedback", body, http.StatusOK, &first, "Idempotency-Key", "k 1")
	h.do("POST", "/v1/tasks/r/feedback", body, http.StatusOK, &again, "Idempotency-Key", "k 1")
	if diff := cmp.Diff(first, again); diff != "" || first.Run != "r" || first.At.IsZero() {
		t.Errorf("%+v\n%s", first, diff)
	}
	h.do("POST", "/v1/tasks/r/feedback", `{"score":1,"id":"two"}`, http.StatusOK, nil)
	for name, tc := range map[string]struct {
		path, body string
		status     int
		field      string
	}{
		"nothing":        {"/v1/tasks/r/feedback", `{"by":"ann"}`, http.StatusBadRequest, "score"},
		"no body":        {"/v1/tasks/r/feedback", ``, http.StatusBadRequest, "body"},
		"too good":       {"/v1/tasks/r/feedback", `{"score":1.5}`, http.StatusBadRequest, "score"},
		"an odd step":    {"/v1/tasks/r/feedback", `{"score":1,"step":-1}`, http.StatusBadRequest, "step"},
		"a step twice":   {"/v1/tasks/r/feedback", `{"score":1,"step":1,"stepId":"a"}`, http.StatusBadRequest, "stepId"},
		"an odd id":      {"/v1/tasks/r/feedback", `{"score":1,"stepId":"a b"}`, http.StatusBadRequest, "stepId"},
		"no such step":   {"/v1/tasks/r/feedback", `{"score":1,"stepId":"a"}`, http.StatusBadRequest, "stepId"},
		"too long":       {"/v1/tasks/r/feedback", `{"comment":"` + strings.Repeat("a", 9000) + `"}`, http.StatusBadRequest, "comment"},
		"large labels":   {"/v1/tasks/r/feedback", `{"labels":{"a":"` + strings.Repeat("a", 9000) + `"}}`, http.StatusBadRequest, "labels.a"},
		"an unknown run": {"/v1/tasks/x/feedback", `{"score":1}`, http.StatusNotFound, ""},
		"another's id":   {"/v1/tasks/r/feedback", `{"score":0,"id":"two"}`, http.StatusConflict, ""},
	} {
		var p messages.Problem
		if h.do("POST", tc.path, tc.body, tc.status, &p); p.Field != tc.field {
			t.Errorf("%s: %+v", name, p)
		}
	}
	var list control.FeedbackList
	h.do("GET", "/v1/tasks/r/feedback", "", http.StatusOK, &list)
	if len(list.Feedback) != 2 || list.Feedback[0].ID != "two" || !list.Feedback[1].Says(&first) || list.More {
		t.Errorf("%+v", list)
	}
	h.do("GET", "/v1/tasks/r/feedback", "", http.StatusNotFound, nil, "Longshore-Tenant", "other")
	// The run is as it was, and so is the list of runs.
	if diff := cmp.Diff(before, h.until("r", messages.EventRunFinished), cmp.AllowUnexported(sse{})); diff != "" {
		t.Error(diff)
	}
	var runs struct{ Runs []control.RunSummary }
	h.do("GET", "/v1/tasks", "", http.StatusOK, &runs)
	if len(runs.Runs) != 1 {
		t.Errorf("%+v", runs)
	}
}

// The documents are served, and name every path and subject.
func TestContractIsServed(t *testing.T) {
	h := open(t)
	var doc struct {
		AsyncAPI string
		Title    string
	}
	h.do("GET", "/asyncapi.json", "", http.StatusOK, &doc)
	if doc.AsyncAPI != "3.1.0" {
		t.Errorf("%+v", doc)
	}
	for _, name := range []string{"task.json", "task.schema.json", "event-run-finished.json", "agent.json"} {
		doc.Title = ""
		if h.do("GET", "/schemas/"+name, "", http.StatusOK, &doc); !strings.HasPrefix(doc.Title, "Longshore ") {
			t.Errorf("%s: %q", name, doc.Title)
		}
	}
	h.do("GET", "/schemas/nothing.json", "", http.StatusNotFound, nil)
	h.do("GET", "/schemas/task", "", http.StatusNotFound, nil)
}
