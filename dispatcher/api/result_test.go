package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/logentry"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

// A transcript is read from the log: whole, in order, in pages that a message of NATS holds, and only when it is asked for.
func TestResultWithTranscript(t *testing.T) {
	const turns, each = 12, 80_000
	var b strings.Builder
	b.WriteString("scenes:\n  - match: \"\"\n    turns:\n")
	for i := range turns {
		fmt.Fprintf(&b, "      - calls: [{name: write_file, arguments: {filePath: f%d.txt, content: %q}}]\n", i, strings.Repeat("x", each))
	}
	b.WriteString("      - text: '{\"n\": 12}'\n")
	play, err := scripted.Parse([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	h := openWith(t, scripted.New(play))
	var sub struct{ Result map[string]any }
	h.do("POST", "/v1/tasks?wait=30s", `{"id":"long","input":"write","seed":7,"outputSchema":{"type":"object"}}`, 200, &sub)
	if sub.Result["transcript"] != nil {
		t.Error("a transcript comes without being asked for")
	}
	var all []messages.TranscriptMessage
	pages := 0
	for path := "/v1/tasks/long/result?transcript=true"; path != ""; pages++ {
		var r messages.AgentResult
		h.do("GET", path, "", 200, &r)
		if r.Transcript == nil || r.Result != `{"n": 12}` {
			t.Fatalf("%+v", r)
		}
		all = append(all, r.Transcript.Messages...)
		path = ""
		if next := r.Transcript.Next; next != "" {
			path = "/v1/tasks/long/result?transcript=true&after=" + next
		}
	}
	// The instructions, the task, and of each turn the call and its answer, then the answer.
	if pages < 2 || len(all) != 2+2*turns+1 {
		t.Fatalf("%d messages in %d pages", len(all), pages)
	}
	if all[0].Role != messages.RoleSystem || all[1].Text() != "write" || all[1].Truncated {
		t.Errorf("it begins with %+v", all[:2])
	}
	for i := range turns {
		call, answer := all[2+2*i], all[3+2*i]
		if c := call.Calls(); call.Step != i+1 || len(c) != 1 || len(c[0].Arguments) < each || call.Truncated {
			t.Errorf("turn %d: step %d, truncated %v", i, call.Step, call.Truncated)
		}
		if want := fmt.Sprintf("Wrote %d bytes to f%d.txt", each, i); answer.Role != messages.RoleTool || answer.Content[0].ToolResult.Shown() != want {
			t.Errorf("turn %d: %+v", i, answer)
		}
	}
	if last := all[len(all)-1]; last.Text() != `{"n": 12}` {
		t.Errorf("it ends with %+v", last)
	}
	var r messages.AgentResult
	h.do("GET", "/v1/tasks/long/result", "", 200, &r)
	if string(r.Output) != `{"n":12}` || !r.Deterministic || r.Attachments["f3.txt"] != "default/long/f3.txt" ||
		!strings.HasPrefix(r.Summary, "Completed after 13 steps and 12 tool calls. Files written: f0.txt,") {
		t.Errorf("output %s, deterministic %v, %v, %q", r.Output, r.Deterministic, r.Attachments, r.Summary)
	}
	for _, query := range []string{"format=x", "format=task-result&transcript=true", "transcript=perhaps", "after=1.1", "transcript=true&after=x", "transcript=true&after=1.0", "transcript=true&after=1"} {
		var p messages.Problem
		if h.do("GET", "/v1/tasks/long/result?"+query, "", 400, &p); p.Field == "" {
			t.Errorf("%s: %+v", query, p)
		}
	}
}

// openWith is open with a model.
func openWith(t *testing.T, m model.Provider) *hall {
	t.Helper()
	dev, err := fleet.StartDev(t.Context(), fleet.DevConfig{
		Dir: t.TempDir(), Dev: settings.Dev{Runs: settings.Runs{Slots: 8, MaxAttempts: 5}}, Abrupt: true, Version: "0.0.0",
		Log: slog.New(slog.DiscardHandler), Parts: fleet.Parts{Model: m},
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

// A task that was cancelled in the queue has a result that says as much.
func TestResultOfACancelledTask(t *testing.T) {
	h := open(t)
	h.do("POST", "/v1/tasks", `{"id":"waits","input":"wait"}`, 202, nil)
	h.do("POST", "/v1/tasks/waits/cancel", `{"reason":"no need"}`, 200, nil)
	var sub struct{ Result *messages.AgentResult }
	h.do("POST", "/v1/tasks?wait=30s", `{"id":"waits","input":"wait"}`, 200, &sub)
	info, err := json.Marshal(sub.Result.Error.Info)
	if err != nil || !strings.Contains(string(info), `"retryable":false`) || !strings.Contains(sub.Result.Summary, "Cancelled") {
		t.Errorf("%+v %s %v", sub.Result, info, err)
	}
}

// What a worker would refuse is refused over NATS and HTTP, before it is queued, with the field.
func TestWrongTasksAreRefusedAtEveryDoor(t *testing.T) {
	h := open(t)
	nc, err := nats.Connect(h.dev.NATS)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	client, err := dispatcher.New(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	for body, field := range map[string]string{
		`{"input":"hi","outputSchema":{"type":7}}`:                                                              "outputSchema.type",
		`{"input":"hi","outputSchema":{"type":"object","properties":{"a":{"$ref":"https://a.example.com/s"}}}}`: "outputSchema.properties.a.$ref",
		`{"input":"hi","limits":{"maxSteps":0}}`:                                                                "limits.maxSteps",
		`{"input":"hi","concurrency":{"key":"k","limit":0}}`:                                                    "concurrency.limit",
		`{"input":"hi","outputSchema":{"type":"object","x":1}}`:                                                 "",
	} {
		if field == "" {
			h.do("POST", "/v1/tasks?wait=30s", body, 200, nil)
			continue
		}
		var p messages.Problem
		if h.do("POST", "/v1/tasks", body, 400, &p); p.Field != field {
			t.Errorf("HTTP: %s: %+v", body, p)
		}
		reply, err := nc.RequestWithContext(t.Context(), control.SubjectSubmit, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		p = messages.Problem{}
		if err := json.Unmarshal(reply.Data, &p); err != nil || p.Field != field || p.Status != http.StatusBadRequest {
			t.Errorf("NATS: %s: %s", body, reply.Data)
		}
	}
	_, err = client.Submit(t.Context(), messages.Task{Input: messages.TextInput("hi"), OutputSchema: json.RawMessage(`{"type":7}`)})
	if fe, ok := errors.AsType[*messages.FieldError](err); !ok || fe.Field != "outputSchema.type" {
		t.Errorf("the client: %v", err)
	}
}

// A task result has the entries that processes have logged, as they are stored.
func TestTaskResultHasTheStoredLog(t *testing.T) {
	h := openLogging(t)
	h.do("POST", "/v1/tasks?wait=30s", `{"id":"r1","input":"fail"}`, 200, nil)
	resp := h.send("GET", "/v1/tasks/r1/logs?follow=true", "") // the last of them are on their way
	var stored []logentry.LogEntry
	for e := range events(resp.Body) {
		var entry logentry.StoredLogEntry
		if err := json.Unmarshal([]byte(e.data), &entry); err != nil {
			t.Fatal(err)
		}
		stored = append(stored, entry.LogEntry)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(h.dev.NATS)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	reply, err := nc.RequestWithContext(t.Context(), control.SubjectResult, []byte(`{"id":"r1","format":"task-result"}`))
	if err != nil {
		t.Fatal(err)
	}
	var overNATS, overHTTP control.TaskResult
	if err := strict.Decode(reply.Data, &overNATS); err != nil {
		t.Fatalf("%v: %s", err, reply.Data)
	}
	h.do("GET", "/v1/tasks/r1/result?format=task-result", "", 200, &overHTTP)
	for over, got := range map[string]control.TaskResult{"NATS": overNATS, "HTTP": overHTTP} {
		if got.Status != messages.StatusFailed || got.Outputs == nil || !strings.Contains(got.Summary, "no such key (model_auth)") || len(stored) < 4 {
			t.Errorf("%s: %+v", over, got)
		}
		if diff := cmp.Diff(stored, got.Logs); diff != "" {
			t.Errorf("%s: the log is not the stored one: %s", over, diff)
		}
	}
}
