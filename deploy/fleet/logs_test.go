//go:build unix

package fleet_test

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages/logentry"
	"github.com/longshore-run/longshore/messages/strict"
)

// A run whose model is overloaded at first, and whose tools fail and panic, logs it.
func TestLogsOfARun(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	w := open(t, shortAckWait, func(c *modelCall) reply {
		switch {
		case c.Task != "trouble":
			return reply{Text: "fine"}
		case calls.Add(1) == 1:
			return reply{Status: 503, Body: `{"error":{"message":"\u001b[2Joverloaded\nfor now"}}`}
		case c.Turn == 0:
			return reply{Tool: "panics", Args: map[string]string{}}
		default:
			return reply{Text: "done"}
		}
	})
	worker := w.toolWorker("first")
	plain := w.submit("plain", withTools)
	run := w.submit("trouble", withTools)
	type entry struct {
		Level              logentry.LogLevel
		Component, Message string
		Step, Attempt      int
	}
	want := []entry{
		{logentry.LogWarn, "runner", "model call failed and is made again", 1, 1},
		{logentry.LogError, "tools", "tool panicked", 0, 0},
		{logentry.LogWarn, "runner", "tool failed", 1, 1},
	}
	var got []entry
	var lines []string
	for e, err := range w.client.Runs().Logs(t.Context(), run, dispatcher.LogOptions{Follow: true}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, entry{e.Level, e.Component, e.Message, e.Step, e.Attempt})
		if e.Worker != "first" || e.Run != run.Run {
			t.Errorf("%+v", e)
		}
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	w.watch(plain).end()
	for e, err := range w.client.Runs().Logs(t.Context(), plain, dispatcher.LogOptions{Follow: true}) {
		t.Errorf("a plain run costs an entry: %+v, %v", e, err)
	}

	env := []string{"NATS_URL=" + w.nats, "TZ=UTC"}
	out := call(t, env, "logs", run.Run, "-f")
	shown := regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d\.\d{3} `).ReplaceAllString(out.stdout, "")
	if out.code != 0 || out.stderr != "" || strings.Count(shown, "\n") != 3 || strings.Contains(shown, "\x1b") ||
		!strings.HasPrefix(shown, "WARN runner: step 1: model call failed and is made again code=model_overloaded err=") ||
		!strings.Contains(shown, "\nERROR tools: tool panicked ") || !strings.Contains(shown, "\nWARN runner: step 1: tool failed ") {
		t.Errorf("%+v", out)
	}
	out = call(t, env, "logs", run.Run, "-o", "json", "--level", "error")
	if diff := cmp.Diff(lines[1]+"\n", out.stdout); diff != "" || out.code != 0 {
		t.Errorf("%+v: %s", out, diff)
	}
	out = call(t, env, "logs", plain.Run)
	if diff := cmp.Diff(outcome{0, "", "no log entries\n"}, out, cmp.AllowUnexported(outcome{})); diff != "" {
		t.Error(diff)
	}
	if out = call(t, env, "logs", "unknown"); out.code != 1 || !strings.Contains(out.stderr, "no run unknown of tenant default") {
		t.Errorf("%+v", out)
	}
	if out = call(t, env, "logs", run.Run, "--level", "loud"); out.code != 2 {
		t.Errorf("%+v", out)
	}
	// Each line that a process writes is an entry too.
	for _, line := range worker.log() {
		var e logentry.LogEntry
		if err := strict.Decode([]byte(line), &e); err != nil {
			t.Errorf("%v: %s", err, line)
		}
	}
	if got := metrics(t, worker); got["longshore_log_entries_published_total"] != strconv.Itoa(len(want)) || got["longshore_log_entries_dropped_total"] != "0" {
		t.Errorf("published %s, dropped %s", got["longshore_log_entries_published_total"], got["longshore_log_entries_dropped_total"])
	}
}
