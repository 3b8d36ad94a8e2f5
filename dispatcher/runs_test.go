package dispatcher

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

func happened(t *testing.T, run string, n int, name string, data any) *messages.Event {
	t.Helper()
	raw, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	return &messages.Event{
		Source: "/tenants/default", Subject: run, Type: "longshore." + name + ".v1", Sequence: strconv.Itoa(n), Data: raw,
		Time: time.Date(2026, 1, 2, 12, 0, n, 0, time.UTC),
	}
}

func TestRecentForgetsTheOldest(t *testing.T) {
	r := newRecent("default", 3)
	for i := range 10 {
		r.add(happened(t, fmt.Sprintf("run-%d", i), 1, "run_queued", messages.RunQueued{Agent: "a"}))
	}
	r.add(happened(t, "run-2", 7, "run_finished", messages.RunFinished{Result: messages.AgentResult{ID: "run-2"}}))
	var ids []string
	for _, run := range r.list(RunFilter{}).Runs {
		ids = append(ids, run.ID)
	}
	if diff := cmp.Diff([]string{"run-9", "run-8", "run-7"}, ids); diff != "" || r.forgotten != 7 || len(r.runs) != 3 {
		t.Errorf("%s, forgot %d, holds %d", diff, r.forgotten, len(r.runs))
	}
}

func TestRunsAreFilteredAndPaged(t *testing.T) {
	r := newRecent("default", 100)
	for i := range 10 {
		labels := map[string]string{"even": strconv.FormatBool(i%2 == 0)}
		r.add(happened(t, fmt.Sprintf("run-%d", i), 1, "run_queued", messages.RunQueued{Agent: "a", Labels: labels}))
	}
	f := RunFilter{Labels: map[string]string{"even": "true"}, Limit: 2}
	var pages []string
	for range 5 {
		l := r.list(f)
		for _, run := range l.Runs {
			pages = append(pages, run.ID)
		}
		if f.After = l.Next; l.Next == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"run-8", "run-6", "run-4", "run-2", "run-0"}, pages); diff != "" {
		t.Error(diff)
	}
	if got := r.list(RunFilter{Statuses: []messages.Status{messages.StatusFailed}}); got.Found != 0 {
		t.Errorf("found %d failed runs", got.Found)
	}
}

func TestRecentReadsARunsLife(t *testing.T) {
	r := newRecent("default", 10)
	status := func(e *messages.Event, want messages.Status) {
		t.Helper()
		r.add(e)
		if got := r.runs["x"].Status; got != want {
			t.Errorf("after %s it is %s, not %s", e.Type, got, want)
		}
	}
	status(happened(t, "x", 1, "run_queued", messages.RunQueued{Agent: "a", Input: strings.Repeat("long ", 99)}), messages.StatusRunning)
	status(happened(t, "x", 2, "step_start", messages.Step{Step: 4}), messages.StatusRunning)
	status(happened(t, "x", 3, "run_waiting", messages.RunWaiting{Reason: "approval"}), messages.StatusWaiting)
	status(happened(t, "x", 4, "run_resumed", messages.RunWaiting{}), messages.StatusRunning)
	status(happened(t, "x", 5, "run_queued", "not an object"), messages.StatusRunning)
	status(happened(t, "x", 6, "run_finished", "not an object"), messages.StatusFailed)
	status(happened(t, "x", 7, "run_waiting", messages.RunWaiting{}), messages.StatusFailed)
	if got := r.runs["x"]; got.Steps != 4 || got.Agent != "a" || got.Finished == nil {
		t.Errorf("%+v", got)
	}
}

func TestRecentOfARunThatBeganBefore(t *testing.T) {
	r := newRecent("default", 10)
	r.add(happened(t, "x", 9, "step_start", messages.Step{Step: 2}))
	now := time.Date(2026, 1, 2, 13, 0, 0, 0, time.UTC)
	if got := r.runs["x"]; got.Started != nil || got.Steps != 2 {
		t.Errorf("%+v", got)
	}
	r.add(happened(t, "x", 10, "run_finished", messages.RunFinished{Result: messages.AgentResult{
		ID: "x", Status: messages.StatusCompleted, Steps: 2, StartedAt: now.Add(-time.Hour), Provenance: &messages.Provenance{Agent: "a"},
	}}))
	if got := r.runs["x"]; got.Agent != "a" || got.Started == nil || got.Status != messages.StatusCompleted {
		t.Errorf("%+v", got)
	}
	r.add(happened(t, "_", 1, "agent_applied", nil))
	r.add(happened(t, "\x1b", 1, "run_queued", nil))
	if len(r.runs) != 1 {
		t.Errorf("%d runs", len(r.runs))
	}
}

// A run in a list is the same whatever order its events were stored in.
func TestRecentOfEventsStoredOutOfOrder(t *testing.T) {
	events := []*messages.Event{
		happened(t, "x", 1, "run_queued", messages.RunQueued{Agent: "a", Input: "hi", Labels: map[string]string{"k": "v"}, QueuedAt: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)}),
		happened(t, "x", 2, "step_start", messages.Step{Step: 1}),
		happened(t, "x", 3, "run_waiting", messages.RunWaiting{Reason: "approval"}),
		happened(t, "x", 4, "run_resumed", messages.RunWaiting{Reason: "approval"}),
		happened(t, "x", 5, "message_end", messages.MessageEnd{Usage: messages.Usage{Total: 7}}),
		happened(t, "x", 6, "run_waiting", messages.RunWaiting{Reason: "answer"}),
		happened(t, "x", 7, "run_finished", messages.RunFinished{Result: messages.AgentResult{
			ID: "x", Status: messages.StatusCompleted, Steps: 1, TokenUsage: messages.Usage{Total: 7}, Provenance: &messages.Provenance{Agent: "a"},
		}}),
	}
	told := func(events ...*messages.Event) *control.RunSummary {
		r := newRecent("default", 10)
		for _, e := range events {
			r.add(e)
		}
		return r.runs["x"]
	}
	for n := range events {
		some := events[:n+1]
		want := told(some...)
		backwards := slices.Clone(some)
		slices.Reverse(backwards)
		if diff := cmp.Diff(want, told(backwards...)); diff != "" {
			t.Errorf("%d events backwards: %s", n+1, diff)
		}
		if diff := cmp.Diff(want, told(append([]*messages.Event{some[n]}, some[:n]...)...)); diff != "" {
			t.Errorf("the last of %d events first: %s", n+1, diff)
		}
	}
}
