package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/logentry"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

// openLogging is open with a worker that logs, and a model whose calls of tools fail.
func openLogging(t *testing.T) *hall {
	t.Helper()
	play, err := scripted.Parse([]byte(`
scenes:
  - match: ask
    turns:
      - {calls: [{name: read_file, arguments: {filePath: missing.txt}}]}
      - {calls: [{name: ask_human, arguments: {question: Which?}}]}
      - {text: hello}
  - match: ""
    turns:
      - {calls: [{name: read_file, arguments: {filePath: missing.txt}}]}
      - {calls: [{name: read_file, arguments: {filePath: ../up.txt}}]}
      - {error: {class: auth, message: no such key, status: 401}}
`))
	if err != nil {
		t.Fatal(err)
	}
	dev, err := fleet.StartDev(t.Context(), fleet.DevConfig{
		Dir: t.TempDir(), Dev: settings.Dev{Runs: settings.Runs{Slots: 8, MaxAttempts: 5}}, Name: "w-1", Abrupt: true, Agents: "testdata/agents", Version: "0.0.0",
		Log: slog.New(slog.NewTextHandler(&bytes.Buffer{}, nil)), Parts: fleet.Parts{Model: model.Provider(scripted.New(play))},
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

// said is what entries say, in short.
func said(entries []logentry.StoredLogEntry) (out []string) {
	for _, e := range entries {
		out = append(out, fmt.Sprintf("%s %s %d %s %v", e.Level, e.Component, e.Step, e.Message, e.Data["code"]))
	}
	return out
}

func TestLogsOfARun(t *testing.T) {
	h := openLogging(t)
	h.do("POST", "/v1/tasks?wait=30s", `{"id":"r1","input":"fail"}`, 200, nil)
	want := []string{
		"warn runner 1 tool failed tool_failed", "warn runner 2 tool failed tool_failed", "warn runner 3 model call failed model_auth",
		"warn runner 3 run failed model_auth",
	}
	// It is followed, for the last of them are on their way.
	resp := h.send("GET", "/v1/tasks/r1/logs?follow=true", "")
	var followed []logentry.StoredLogEntry
	for e := range events(resp.Body) {
		var entry logentry.StoredLogEntry
		if err := json.Unmarshal([]byte(e.data), &entry); err != nil || e.name != "log" || e.id != strconv.FormatUint(entry.Seq, 10) {
			t.Fatalf("%+v: %v", e, err)
		}
		followed = append(followed, entry)
	}
	_ = resp.Body.Close()
	if ct := resp.Header.Get("Content-Type"); ct != "text/event-stream" {
		t.Errorf("Content-Type %q", ct)
	}
	if diff := cmp.Diff(want, said(followed)); diff != "" {
		t.Fatal(diff)
	}
	e := followed[0]
	if e.Tenant != "default" || e.Run != "r1" || e.Worker != "w-1" || e.Attempt != 1 || e.Data["tool"] != "read_file" {
		t.Errorf("%+v", e)
	}
	for query, tc := range map[string]struct {
		want []string
		next uint64
	}{
		"":             {want, 0},
		"?level=error": {nil, 0},
		"?level=debug": {want, 0},
		"?limit=2":     {want[:2], followed[1].Seq},
		"?limit=4":     {want, 0},
		"?after=" + strconv.FormatUint(followed[1].Seq, 10): {want[2:], 0},
		"?level=warn&limit=1&after=1":                       {want[1:2], followed[1].Seq},
	} {
		var list logentry.LogEntryList
		h.do("GET", "/v1/tasks/r1/logs"+query, "", 200, &list)
		if diff := cmp.Diff(tc.want, said(list.Entries)); diff != "" || list.Next != tc.next || list.Entries == nil {
			t.Errorf("%q: next %d, want %d: %s", query, list.Next, tc.next, diff)
		}
	}
	resp = h.send("GET", "/v1/tasks/r1/logs?follow=true", "", "Last-Event-ID", strconv.FormatUint(followed[2].Seq, 10))
	n := 0
	for e := range events(resp.Body) {
		if n++; e.id != strconv.FormatUint(followed[3].Seq, 10) {
			t.Errorf("after a resume: %+v", e)
		}
	}
	_ = resp.Body.Close()
	if n != 1 {
		t.Errorf("%d entries after a resume", n)
	}
}

// A follower sees what comes, and the end.
func TestLogsAreFollowed(t *testing.T) {
	h := openLogging(t)
	h.do("POST", "/v1/tasks", `{"id":"r1","input":"ask","agent":"careful"}`, 202, nil)
	client, err := h.dev.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for e, err := range client.Runs().Logs(t.Context(), dispatcher.Run("r1"), dispatcher.LogOptions{Follow: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, e.Message); e.Message == "run waits" {
			h.do("POST", "/v1/tasks/r1/answers", `{"text":"that one"}`, 200, nil)
		}
	}
	if diff := cmp.Diff([]string{"tool failed", "run waits", "run resumed after a wait"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestLogsRefuses(t *testing.T) {
	h := openLogging(t)
	h.do("POST", "/v1/tasks?wait=30s", `{"id":"r1","input":"fail"}`, 200, nil)
	for query, field := range map[string]string{
		"?level=loud": "level", "?after=x": "after", "?limit=0": "limit", "?limit=1001": "limit", "?follow=maybe": "follow",
		"?follow=true&limit=5": "limit", "?more=1": "more", "?after=-1&follow=true": "after",
	} {
		var p messages.Problem
		h.do("GET", "/v1/tasks/r1/logs"+query, "", 400, &p)
		if p.Field != field {
			t.Errorf("%s: %+v", query, p)
		}
	}
	for _, path := range []string{"/v1/tasks/unknown/logs", "/v1/tasks/unknown/logs?follow=true"} {
		h.do("GET", path, "", 404, nil)
	}
	h.do("GET", "/v1/tasks/r1/logs", "", 404, nil, "Longshore-Tenant", "other")
}
