package api_test

import (
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

// openCareful is a hall whose agent "careful" asks before it writes, and may ask a person.
func openCareful(t *testing.T) *hall {
	t.Helper()
	play, err := scripted.Parse([]byte(`
scenes:
  - match: write
    turns:
      - {text: I write., calls: [{name: write_file, arguments: {filePath: a.txt, content: hi}}]}
      - {text: done}
  - match: ask
    turns:
      - {text: I ask., calls: [{name: ask_human, arguments: {question: Which?}}]}
      - {text: done}
`))
	if err != nil {
		t.Fatal(err)
	}
	dev, err := fleet.StartDev(t.Context(), fleet.DevConfig{
		Dir: t.TempDir(), Dev: settings.Dev{Runs: settings.Runs{Slots: 8, MaxAttempts: 5}}, Abrupt: true, Version: "0.0.0", Agents: "testdata/agents",
		Log: slog.New(slog.DiscardHandler), Parts: fleet.Parts{Model: model.Provider(scripted.New(play))},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := dev.Stop(); err != nil {
			t.Error(err)
		}
	})
	return &hall{t, dev, "http://" + dev.API}
}

// waits polls until a run waits.
func (h *hall) waits(id string) {
	h.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var state struct{ Status messages.Status }
		h.do("GET", "/v1/tasks/"+id, "", http.StatusOK, &state)
		if state.Status == messages.StatusWaiting {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("%s is %s", id, state.Status)
		}
	}
}

func TestApprovals(t *testing.T) {
	h := openCareful(t)
	h.do("POST", "/v1/tasks", `{"id":"w","agent":"careful","input":"write it"}`, http.StatusAccepted, nil)
	h.waits("w")
	var list control.ApprovalList
	for deadline := time.Now().Add(patience); len(list.Approvals) == 0 && time.Now().Before(deadline); { // its event follows its log
		h.do("GET", "/v1/approvals?limit=5", "", http.StatusOK, &list)
	}
	if len(list.Approvals) != 1 || list.Approvals[0].ID != "w" || list.Approvals[0].Tool != "write_file" {
		t.Fatalf("waits: %+v", list)
	}
	list = control.ApprovalList{}
	h.do("GET", "/v1/approvals", "", http.StatusOK, &list, "Longshore-Tenant", "other")
	if len(list.Approvals) != 0 {
		t.Errorf("another tenant sees %+v", list)
	}
	h.do("GET", "/v1/approvals", "", http.StatusOK, &list)
	body := `{"call":"` + list.Approvals[0].Call + `","hash":"` + list.Approvals[0].Hash + `","decision":"approve","by":"ann"}`
	for name, tc := range map[string]struct {
		path, body string
		status     int
	}{
		"no decision":        {"/v1/tasks/w/approvals", `{"call":"c"}`, http.StatusBadRequest},
		"an odd decision":    {"/v1/tasks/w/approvals", `{"call":"c","decision":"maybe"}`, http.StatusBadRequest},
		"an unknown field":   {"/v1/tasks/w/approvals", `{"call":"c","decision":"deny","why":"x"}`, http.StatusBadRequest},
		"no body":            {"/v1/tasks/w/approvals", ``, http.StatusBadRequest},
		"another call":       {"/v1/tasks/w/approvals", `{"call":"c","decision":"deny"}`, http.StatusConflict},
		"an unknown run":     {"/v1/tasks/x/approvals", `{"call":"c","decision":"deny"}`, http.StatusNotFound},
		"an answer instead":  {"/v1/tasks/w/answers", `{"text":"yes"}`, http.StatusConflict},
		"an answer of a lie": {"/v1/tasks/x/answers", `{"text":"yes"}`, http.StatusNotFound},
	} {
		t.Run(name, func(*testing.T) { h.do("POST", tc.path, tc.body, tc.status, nil) })
	}
	for range 2 { // the same again is the same
		h.do("POST", "/v1/tasks/w/approvals", body, http.StatusOK, nil, "Idempotency-Key", "once")
	}
	h.do("POST", "/v1/tasks/w/approvals", body, http.StatusConflict, nil)
	h.until("w", messages.EventRunFinished)
	var r messages.AgentResult
	h.do("GET", "/v1/tasks/w/result", "", http.StatusOK, &r)
	if !r.Success || len(r.Actions) != 1 || !r.Actions[0].OK {
		t.Errorf("%s %+v", r.Status, r.Actions)
	}
}

func TestAnswers(t *testing.T) {
	h := openCareful(t)
	h.do("POST", "/v1/tasks", `{"id":"a","agent":"careful","input":"ask me"}`, http.StatusAccepted, nil)
	h.waits("a")
	h.do("POST", "/v1/tasks/a/answers", `{"text":"the blue one","by":"ann"}`, http.StatusOK, nil)
	h.until("a", messages.EventRunFinished)
	var r messages.AgentResult
	h.do("GET", "/v1/tasks/a/result", "", http.StatusOK, &r)
	if !r.Success || len(r.Actions) != 1 || r.Actions[0].Output != "the blue one" {
		t.Errorf("%s %+v", r.Status, r.Actions)
	}
}
