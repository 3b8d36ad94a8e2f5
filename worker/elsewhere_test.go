package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/roster"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker"
	"github.com/longshore-run/longshore/worker/runner"
)

// cranes counts the calls of tools by worker.
type cranes struct {
	mu    sync.Mutex
	calls map[string]int // "worker tool"
}

// tool is one that counts its calls on a worker.
func (c *cranes) tool(t *testing.T, of, name string) tools.Tool {
	t.Helper()
	tool, err := tools.Func(messages.ToolSpec{Name: name, Description: "A crane.", Effect: messages.EffectRead},
		func(context.Context, tools.Call, struct{}) (tools.Result, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.calls[of+" "+name]++
			return tools.Text("lifted"), nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

const lifting = `
scenes:
  - match: lift a
    turns:
      - calls: [{name: crane_a, arguments: {}}]
      - text: Done.
  - match: lift b
    turns:
      - calls: [{name: crane_b, arguments: {}}]
      - text: Done.
`

// lifter is an agent that calls a tool once.
func lifter(tool string) messages.Definition {
	return messages.Definition{Name: tool, Instructions: tool, Tools: []string{tool}, MaxSteps: 4}
}

// kind adds a worker that has one tool and announces it.
func (h *house) kind(c *cranes, name, tool string, labels messages.Labels, slots int) (stop func()) {
	h.t.Helper()
	_, stop = h.worker(name, script(h.t, lifting), worker.Config{Name: name, Slots: slots, Labels: labels, Look: time.Minute, Roster: roster.New(h.bus).NewRoster("")}, c.tool(h.t, name, tool))
	return stop
}

// Runs go to the worker that has their tool, whichever is given them first; no attempt is spent and no letter written.
func TestRunsGoToTheWorkerThatFits(t *testing.T) {
	t.Parallel()
	h := open(t, 3*time.Second, lifter("crane_a"), lifter("crane_b"))
	c := &cranes{calls: map[string]int{}}
	h.kind(c, "a", "crane_a", nil, 8)
	h.kind(c, "b", "crane_b", nil, 8)
	const each = 20
	var runs []messages.Ref
	for range each {
		for _, agent := range []string{"crane_a", "crane_b"} {
			runs = append(runs, h.submit(messages.Task{Agent: agent, Input: messages.TextInput("lift " + agent[len("crane_"):])}))
		}
	}
	for _, r := range runs {
		if res := h.result(r); res.Status != messages.StatusCompleted || res.RetryInfo != nil {
			t.Errorf("%s: %s %v %+v", r, res.Status, res.Error, res.RetryInfo)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls["a crane_a"] != each || c.calls["b crane_b"] != each || len(c.calls) != 2 {
		t.Errorf("calls: %v", c.calls)
	}
}

// A run that no worker fits waits, says for what, and continues soon after one joins.
func TestRunWaitsForAWorkerThatFits(t *testing.T) {
	t.Parallel()
	h := open(t, 2*time.Second, lifter("crane_a"), lifter("crane_b"))
	c := &cranes{calls: map[string]int{}}
	h.kind(c, "a", "crane_a", nil, 8)
	tool := h.submit(messages.Task{Agent: "crane_b", Input: messages.TextInput("lift b")})
	label := h.submit(messages.Task{Agent: "crane_a", Requires: messages.Labels{"gpu": "true"}, Input: messages.TextInput("lift a")})
	cancelled := h.submit(messages.Task{Agent: "crane_b", Input: messages.TextInput("lift b")})
	for run, why := range map[messages.Ref]string{
		tool: "no worker has the tool crane_b", cancelled: "no worker has the tool crane_b", label: "no worker has the label gpu=true",
	} {
		var d messages.RunWaiting
		if err := json.Unmarshal(h.until(run, messages.EventRunWaiting).Data, &d); err != nil {
			t.Fatal(err)
		}
		st, err := h.client.Status(t.Context(), run)
		if err != nil || st.Status != messages.StatusWaiting || st.Waits != queue.ParkWorker || st.WaitsFor != why || d.Question != why {
			t.Errorf("%s: %+v %+v %v, want %q", run, st, d, err, why)
		}
		if y, err := h.client.Runs().Why(t.Context(), run); err != nil || !strings.Contains(y.Text, why) {
			t.Errorf("why %s: %q %v", run, y.Text, err)
		}
	}
	if _, err := h.client.Cancel(t.Context(), cancelled, "enough"); err != nil {
		t.Fatal(err)
	}
	if res := h.result(cancelled); res.Status != messages.StatusCancelled {
		t.Errorf("it ended as %s", res.Status)
	}
	begun := time.Now()
	h.kind(c, "b", "crane_b", nil, 8)
	h.kind(c, "gpu", "crane_a", messages.Labels{"gpu": "true"}, 8)
	for _, r := range []messages.Ref{tool, label} {
		if res := h.result(r); res.Status != messages.StatusCompleted {
			t.Errorf("%s: %s %v", r, res.Status, res.Error)
		}
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("they continued after %s", took)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls["b crane_b"] != 1 || c.calls["gpu crane_a"] != 1 || len(c.calls) != 2 {
		t.Errorf("calls: %v", c.calls)
	}
}

// Runs for which the only worker that fits has no slot wait for one, and none is lost.
func TestRunsWaitForASlotOfTheWorkerThatFits(t *testing.T) {
	t.Parallel()
	h := open(t, 3*time.Second, lifter("crane_a"), lifter("crane_b"))
	c := &cranes{calls: map[string]int{}}
	h.kind(c, "a", "crane_a", nil, 64)
	h.kind(c, "b", "crane_b", nil, 1)
	const n = 40
	var runs []messages.Ref
	for range n {
		runs = append(runs, h.submit(messages.Task{Agent: "crane_b", Input: messages.TextInput("lift b")}))
	}
	for _, r := range runs {
		if res := h.result(r); res.Status != messages.StatusCompleted {
			t.Errorf("%s: %s %v", r, res.Status, res.Error)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if got := fmt.Sprint(c.calls); got != fmt.Sprintf("map[b crane_b:%d]", n) {
		t.Errorf("calls: %s", got)
	}
}

// After the worker that fits was killed, its runs wait visibly for another, and what was done is not done again.
func TestFitAfterAKill(t *testing.T) {
	t.Parallel()
	h := open(t, 5*time.Second, lifter("crane_a"), lifter("crane_b"))
	c := &cranes{calls: map[string]int{}}
	begun := make(chan struct{}, 1)
	held, err := tools.Func(messages.ToolSpec{Name: "crane_b", Description: "A crane.", Effect: messages.EffectRead},
		func(ctx context.Context, _ tools.Call, _ struct{}) (tools.Result, error) {
			begun <- struct{}{}
			<-ctx.Done() // until its worker is gone
			return tools.Result{}, context.Cause(ctx)
		})
	if err != nil {
		t.Fatal(err)
	}
	h.worker("b", script(t, lifting), worker.Config{Name: "b", DrainTimeout: time.Millisecond, Roster: roster.New(h.bus).NewRoster("")}, held)
	cut := h.newest.Close
	run := h.submit(messages.Task{Agent: "crane_b", Input: messages.TextInput("lift b")})
	<-begun
	h.kind(c, "a", "crane_a", nil, 8)
	cut()
	var d messages.RunWaiting
	if err := json.Unmarshal(h.until(run, messages.EventRunWaiting).Data, &d); err != nil || d.Reason != queue.ParkWorker {
		t.Fatalf("it waits for %+v %v", d, err)
	}
	h.kind(c, "b2", "crane_b", nil, 8)
	res := h.result(run)
	if res.Status != messages.StatusCompleted || res.TokenUsage.Total == 0 || len(res.ModelCalls) != 2 {
		t.Errorf("%s %v after %d model calls", res.Status, res.Error, len(res.ModelCalls))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls["b2 crane_b"] != 1 || len(c.calls) != 1 {
		t.Errorf("calls: %v", c.calls)
	}
}

// A worker whose announcements all others would leave out does not start.
func TestTooManyToolsToAnnounce(t *testing.T) {
	t.Parallel()
	h := open(t, 5*time.Second)
	names := make([]string, messages.MaxWorkerTools+1)
	for i := range names {
		names[i] = fmt.Sprint("crane_", i)
	}
	b := h.open(h.conn())
	w := worker.New(worker.Config{Bus: b, Runner: runner.New(runner.Config{Life: "w"}), Roster: roster.New(b).NewRoster(""), Tools: func() []string { return names }})
	if err := w.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "tools: has more than 1024") {
		t.Errorf("it ended with %v", err)
	}
}

// An owner without the run's tools was lost between its claim and its park: the next one does not call the model without them.
func TestUnpinnedToolsArePinnedFirst(t *testing.T) {
	t.Parallel()
	h := open(t, 5*time.Second, lifter("crane_b"))
	c := &cranes{calls: map[string]int{}}
	h.kind(c, "b", "crane_b", nil, 8)
	run := messages.Ref{Tenant: messages.DefaultTenant, Run: "unpinned"}
	task := messages.Task{ID: run.Run, Tenant: run.Tenant, Input: messages.TextInput("lift b"), Agent: "crane_b"}
	task.SetDefaults()
	agent := lifter("crane_b")
	agent.SetDefaults()
	k := controller(h.bus, h.logs())
	if _, err := k.Begin(t.Context(), run, &record.Started{Task: task, Agent: agent}, &record.Claimed{Claim: "dead-1", Worker: "dead", Ticket: 1 << 40}); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Sweep(t.Context(), func(yield func(messages.Ref, error) bool) { yield(run, nil) }); err != nil {
		t.Fatal(err)
	}
	if res := h.result(run); res.Status != messages.StatusCompleted {
		t.Errorf("%s %v", res.Status, res.Error)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls["b crane_b"] != 1 {
		t.Errorf("calls: %v", c.calls)
	}
}
