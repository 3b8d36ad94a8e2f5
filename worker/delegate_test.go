package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/quotas"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/delegate"
	"github.com/longshore-run/longshore/worker"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/model"
)

// puppet is a model that does what the input of the task says, line by line, a turn each: "say x" answers, "delegate {…}" and other
// names of tools call one, "wait" holds the reply back until release or the call is aborted, "dawdle" until its own release whatever
// happens, "then x" answers once another has begun to dawdle, "fail" is an error of the model. A run whose lines are used up answers
// with the last result of a tool.
type puppet struct {
	arrived chan struct{}
	free    chan struct{}
	late    chan struct{} // for those who dawdle
	dawdles chan struct{} // one for each that has begun to
}

func newPuppet() *puppet {
	return &puppet{
		arrived: make(chan struct{}, 1000), free: make(chan struct{}), late: make(chan struct{}), dawdles: make(chan struct{}, 1000),
	}
}

func (p *puppet) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if err := req.Begins(); err != nil {
			yield(model.Delta{}, err)
			return
		}
		var lines []string
		turn, last := 0, ""
		for _, m := range req.Messages {
			switch m.Role {
			case messages.RoleUser:
				if lines == nil {
					lines = strings.Split(m.Text(), "\n")
				}
			case messages.RoleAssistant:
				turn++
			case messages.RoleTool:
				last = m.Content[len(m.Content)-1].ToolResult.Shown()
			case messages.RoleSystem:
			}
		}
		line := "say " + last
		if turn < len(lines) {
			line = lines[turn]
		}
		verb, rest, _ := strings.Cut(line, " ")
		reply := &model.Reply{Message: messages.Message{Role: messages.RoleAssistant}, Stop: messages.StopEnd, Usage: messages.Usage{Input: 10, Output: 5, Total: 15}}
		switch verb {
		case "fail":
			yield(model.Delta{}, &model.Error{Class: model.InvalidRequest, Detail: rest})
			return
		case "wait":
			p.arrived <- struct{}{}
			select {
			case <-p.free:
			case <-ctx.Done():
				yield(model.Delta{}, context.Cause(ctx))
				return
			}
			reply.Message.Content = messages.TextContent("waited")
		case "dawdle":
			p.dawdles <- struct{}{}
			select {
			case <-p.late:
			case <-time.After(patience):
			}
			yield(model.Delta{}, context.Canceled)
			return
		case "then": // children of several partitions begin in any order
			select {
			case <-p.dawdles:
			case <-ctx.Done():
				yield(model.Delta{}, context.Cause(ctx))
				return
			}
			reply.Message.Content = messages.TextContent(rest)
		case "say":
			reply.Message.Content = messages.TextContent(rest)
		default:
			reply.Stop = messages.StopToolCalls
			reply.Message.Content = []messages.Block{{ToolCall: &messages.ToolCall{ID: fmt.Sprintf("c%d", turn), Name: verb, Arguments: rest}}}
		}
		yield(model.Delta{Reply: reply}, nil)
	}
}

func delegateTools(t *testing.T) []tools.Tool {
	t.Helper()
	ts, err := delegate.Tools()
	if err != nil {
		t.Fatal(err)
	}
	return ts
}

// asks are the arguments of a delegation of inputs to an agent.
func asks(t *testing.T, more map[string]any, agent string, inputs ...string) string {
	t.Helper()
	args := map[string]any{}
	maps.Copy(args, more)
	var list []map[string]string
	for _, in := range inputs {
		list = append(list, map[string]string{"agent": agent, "input": in})
	}
	args["tasks"] = list
	b, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return messages.ToolDelegate + " " + string(b)
}

func answersOf(t *testing.T, r *messages.AgentResult) []messages.ChildResult {
	t.Helper()
	var out []messages.ChildResult
	text, _ := r.Result.(string)
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v: %s, %+v", err, text, r.Error)
	}
	return out
}

func boss(depth int, tools ...string) messages.Definition {
	return messages.Definition{
		Name: "boss", Tools: append([]string{messages.ToolDelegate}, tools...), MaxSteps: 10,
		Delegate: &messages.Delegate{Agents: []string{"boss", "hand"}, Depth: depth, Total: 200},
	}
}

func hand(tools ...string) messages.Definition {
	return messages.Definition{Name: "hand", Tools: tools, MaxSteps: 10}
}

func withDefaults(ds ...messages.Definition) []messages.Definition {
	for i := range ds {
		ds[i].SetDefaults()
	}
	return ds
}

func TestDelegate(t *testing.T) {
	h := open(t, 30*time.Second, withDefaults(boss(1), hand())...)
	h.worker("w", newPuppet(), worker.Config{}, delegateTools(t)...)
	run := h.submit(messages.Task{Agent: "boss", Input: messages.TextInput(asks(t, nil, "hand", "say one", "fail no", "say three"))})
	r := h.result(run)
	got := answersOf(t, r)
	if len(got) != 3 || got[0].Output != "one" || got[1].Status != messages.StatusFailed || got[1].Error == nil || got[2].Output != "three" {
		t.Errorf("%+v", got)
	}
	if r.Below == nil || r.Below.Runs != 3 || r.Below.Tokens != 30 {
		t.Errorf("below: %+v", r.Below)
	}
	seen := names(h.events(run))
	for _, want := range []string{messages.EventDelegated, messages.EventChildEnded, messages.EventRunWaiting, messages.EventRunResumed} {
		if !slices.Contains(seen, want) {
			t.Errorf("no %s in %v", want, seen)
		}
	}
	child := messages.Ref{Tenant: run.Tenant, Run: got[0].Run}
	var started messages.RunStarted
	if err := json.Unmarshal(h.until(child, messages.EventRunStarted).Data, &started); err != nil || started.Parent == nil || started.Parent.Run != run.Run {
		t.Errorf("the child began as %+v: %v", started, err)
	}
	h.noneLeft(run)
}

// noneLeft checks that the queue holds nothing, and that each run of a tenant has ended, told its end once, and was claimed once by each wake.
func (h *house) noneLeft(root messages.Ref) {
	h.t.Helper()
	k := controller(h.bus, h.logs())
	var walk func(run messages.Ref)
	walk = func(run messages.Ref) {
		last, ok, err := h.logs().Last(h.t.Context(), run)
		if err != nil || !ok || last.Head.Phase != record.PhaseFinished {
			h.t.Errorf("%s: %v %v %+v", run, ok, err, last.Head)
			return
		}
		told := map[int]bool{}
		for e, err := range h.logs().Read(h.t.Context(), run, 0, runlog.Tail) {
			if err != nil {
				h.t.Fatal(err)
			}
			for _, r := range e.Records {
				switch r := r.(type) {
				case *record.Delegated:
					for i := range r.Children {
						walk(messages.Ref{Tenant: run.Tenant, Run: r.Children[i].Task.ID})
					}
				case *record.ChildEnded:
					if key := r.Number*100 + r.Index; told[key] {
						h.t.Errorf("%s was notified of child %d twice", run, key)
					} else {
						told[key] = true
					}
				}
			}
		}
		if why, _, err := k.Stranded(h.t.Context(), run, func(context.Context, messages.Ref) (bool, error) { return false, nil }); why != "" || err != nil {
			h.t.Errorf("%s: %s %v", run, why, err)
		}
	}
	walk(root)
}

// The run that waits for its children holds neither a slot nor a permit.
func TestDelegateHoldsNoPermit(t *testing.T) {
	h := open(t, 30*time.Second, withDefaults(boss(2), hand())...)
	if _, err := quotas.New(h.bus, h.logs()).PutQuota(t.Context(), queue.QuotaRef{Kind: queue.QuotaTenant, Name: messages.DefaultTenant}, queue.Quota{MaxRunning: 1}, "", nil); err != nil {
		t.Fatal(err)
	}
	h.worker("w", newPuppet(), worker.Config{Slots: 1}, delegateTools(t)...)
	deep := asks(t, nil, "boss", asks(t, nil, "hand", "say deep", "say deeper"))
	r := h.result(h.submit(messages.Task{Agent: "boss", Input: messages.TextInput(deep)}))
	if got := answersOf(t, r); len(got) != 1 || !strings.Contains(got[0].Output, "deeper") {
		t.Errorf("%+v", got)
	}
	if r.Below == nil || r.Below.Runs != 3 {
		t.Errorf("below: %+v", r.Below)
	}
}

// The first that completes is enough, and so is a quorum; the others are ended.
func TestDelegateEnoughHaveEnded(t *testing.T) {
	for name, tc := range map[string]struct {
		more   map[string]any
		inputs []string
		want   []messages.Status
		failed bool
	}{
		"first":            {map[string]any{"wait": "first"}, []string{"wait", "say quick", "wait"}, []messages.Status{"cancelled", "completed", "cancelled"}, false},
		"first, one fails": {map[string]any{"wait": "first"}, []string{"fail x", "say quick"}, nil, false},
		"quorum":           {map[string]any{"wait": "quorum", "quorum": 2}, []string{"say a", "say b", "wait"}, []messages.Status{"completed", "completed", "cancelled"}, false},
		"no quorum":        {map[string]any{"wait": "quorum", "quorum": 2}, []string{"fail a", "fail b", "wait"}, []messages.Status{"failed", "failed", "cancelled"}, false},
		"must complete":    {map[string]any{"onFailure": "fail"}, []string{"fail a", "wait", "wait"}, []messages.Status{"failed", "cancelled", "cancelled"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, 30*time.Second, withDefaults(boss(1), hand())...)
			h.worker("w", newPuppet(), worker.Config{}, delegateTools(t)...)
			run := h.submit(messages.Task{Agent: "boss", Input: messages.TextInput(asks(t, tc.more, "hand", tc.inputs...))})
			r := h.result(run)
			var got []messages.Status
			for _, c := range answersOf(t, r) {
				got = append(got, c.Status)
				h.result(messages.Ref{Tenant: run.Tenant, Run: c.Run})
			}
			if tc.want != nil && !slices.Equal(got, tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
			if len(r.Actions) != 1 || r.Actions[0].OK == tc.failed {
				t.Errorf("%+v", r.Actions)
			}
			h.noneLeft(run)
		})
	}
}

// A child that is no longer waited for ends when its parent has delegated again: its end is told all the same, and what it was given
// comes back.
func TestDelegateAgainBeforeTheEnd(t *testing.T) {
	parent := boss(1)
	parent.Budget = &messages.Budget{Caps: messages.Caps{Tokens: 4000}}
	parent.MaxTokens = 20
	child := hand()
	child.MaxTokens = 20
	h := open(t, 30*time.Second, withDefaults(parent, child)...)
	p := newPuppet()
	h.worker("w", p, worker.Config{}, delegateTools(t)...)
	run := h.submit(messages.Task{Agent: "boss", Input: messages.TextInput(
		asks(t, map[string]any{"wait": "first"}, "hand", "dawdle", "then quick") + "\n" + asks(t, nil, "hand", "wait", "say d"),
	)})
	select {
	case <-p.arrived: // the parent has delegated again
	case <-time.After(patience):
		t.Fatal("the parent does not delegate again")
	}
	close(p.late)
	h.result(messages.Ref{Tenant: run.Tenant, Run: record.ChildRun(run, 1, 0)})
	close(p.free)
	r := h.result(run)
	if r.Below == nil || r.Below.Runs != 4 {
		t.Errorf("below: %+v", r.Below)
	}
	state, told, late, newest := &agent.State{}, map[string]bool{}, 0, 0
	for e, err := range h.logs().Read(t.Context(), run, 0, runlog.Tail) {
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range e.Records {
			switch r := r.(type) {
			case *record.Delegated:
				newest = r.Number
			case *record.ChildEnded:
				if told[r.Run] = true; r.Number < newest {
					late++
				}
			}
		}
		if err := state.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	if len(told) != 4 || late == 0 {
		t.Errorf("notified of %d of 4 ends, %d of them late", len(told), late)
	}
	if state.Held != (record.Share{}) || len(state.Earlier) > 0 {
		t.Errorf("still set aside: %+v, for %d calls", state.Held, len(state.Earlier))
	}
	h.noneLeft(run)
}

// A run of which children of many calls are still ending is told so when it delegates again.
func TestDelegateWhileManyEnd(t *testing.T) {
	parent := boss(1)
	parent.MaxSteps = 2 * record.MaxEarlier
	h := open(t, 30*time.Second, withDefaults(parent, hand())...)
	p := newPuppet()
	h.worker("w", p, worker.Config{Slots: 2 * record.MaxEarlier}, delegateTools(t)...)
	var calls []string
	for i := range record.MaxEarlier + 1 {
		calls = append(calls, asks(t, map[string]any{"wait": "first"}, "hand", "dawdle", fmt.Sprint("then ", i)))
	}
	run := h.submit(messages.Task{Agent: "boss", Input: messages.TextInput(strings.Join(calls, "\n"))})
	r := h.result(run)
	if want := fmt.Sprintf("Sub-tasks of %d earlier calls are still ending: hand out more later.", record.MaxEarlier); r.Result != want {
		t.Errorf("%v, %+v", r.Result, r.Error)
	}
	close(p.late)
	h.treeEnds(run, "")
	h.noneLeft(run)
}

// Who cancels a run ends all below it: those that work, and those that wait in the queue.
func TestDelegateCancelledTree(t *testing.T) {
	h := open(t, 30*time.Second, withDefaults(boss(3), hand())...)
	p := newPuppet()
	h.worker("w", p, worker.Config{Slots: 2}, delegateTools(t)...)
	leaves := asks(t, nil, "hand", "wait", "wait", "wait", "wait")
	tree := asks(t, nil, "boss", asks(t, nil, "boss", leaves), asks(t, nil, "boss", leaves))
	run := h.submit(messages.Task{Agent: "boss", Input: messages.TextInput(tree)})
	for range 2 { // both slots work at leaves, and the other leaves are queued
		select {
		case <-p.arrived:
		case <-time.After(patience):
			t.Fatal("no leaf works")
		}
	}
	if _, err := h.client.Cancel(t.Context(), run, "enough"); err != nil {
		t.Fatal(err)
	}
	if r := h.result(run); r.Status != messages.StatusCancelled {
		t.Errorf("%+v", r)
	}
	h.treeEnds(run, messages.StatusCancelled)
	h.noneLeft(run)
}

// treeEnds waits until all below a run have ended so; empty: in any way.
func (h *house) treeEnds(run messages.Ref, status messages.Status) {
	h.t.Helper()
	for e, err := range h.logs().Read(h.t.Context(), run, 0, runlog.Tail) {
		if err != nil {
			h.t.Fatal(err)
		}
		for _, r := range e.Records {
			if d, ok := r.(*record.Delegated); ok {
				for i := range d.Children {
					child := messages.Ref{Tenant: run.Tenant, Run: d.Children[i].Task.ID}
					if r := h.result(child); status != "" && r.Status != status {
						h.t.Errorf("%s: %s %+v", child, r.Status, r.Error)
					}
					h.treeEnds(child, status)
				}
			}
		}
	}
}

func TestDelegateFifty(t *testing.T) {
	h := open(t, 30*time.Second, withDefaults(boss(1), hand())...)
	h.worker("w", newPuppet(), worker.Config{}, delegateTools(t)...)
	h.worker("v", newPuppet(), worker.Config{}, delegateTools(t)...)
	var inputs []string
	for i := range 50 {
		inputs = append(inputs, fmt.Sprint("say ", i))
	}
	run := h.submit(messages.Task{Agent: "boss", Input: messages.TextInput(asks(t, nil, "hand", inputs...))})
	got := answersOf(t, h.result(run))
	for i, c := range got {
		if c.Output != strconv.Itoa(i) {
			t.Errorf("%d: %+v", i, c)
		}
	}
	if len(got) != 50 {
		t.Errorf("%d children", len(got))
	}
	h.noneLeft(run)
}

// What a child may do is what both agents may: a call of a tool that its parent lacks is refused.
func TestDelegateHandsDownNoMore(t *testing.T) {
	child := hand("write_file", "list_files")
	child.Grants = &messages.Grants{Hosts: []string{"a.example.com"}}
	parent := boss(1, "list_files")
	parent.Grants = &messages.Grants{Hosts: []string{"b.example.com"}}
	h := open(t, 30*time.Second, withDefaults(parent, child)...)
	h.worker("w", newPuppet(), worker.Config{}, delegateTools(t)...)
	write := "write_file {\"filePath\":\"a\",\"content\":\"b\"}"
	run := h.submit(messages.Task{Agent: "boss", Input: messages.TextInput(asks(t, nil, "hand", write, "list_files {}\nsay listed"))})
	got := answersOf(t, h.result(run))
	if len(got) != 2 || !strings.Contains(got[0].Output, "write_file") || !strings.Contains(got[0].Output, "list_files") || got[1].Output != "listed" {
		t.Errorf("%+v", got)
	}
	for e, err := range h.logs().Read(t.Context(), messages.Ref{Tenant: run.Tenant, Run: got[0].Run}, 0, 1) {
		if err != nil {
			t.Fatal(err)
		}
		s, ok := e.Records[0].(*record.Started)
		if !ok || !slices.Equal(s.Agent.Tools, []string{"list_files"}) || s.Agent.Grants == nil || s.Agent.Grants.Hosts == nil || len(s.Agent.Grants.Hosts) != 0 {
			t.Errorf("%+v", e.Records[0])
		}
		break
	}
}

// A child gets a share of what its parent has left, and what it used counts for the parent.
func TestDelegateBudget(t *testing.T) {
	parent := boss(1)
	parent.Budget = &messages.Budget{Caps: messages.Caps{Tokens: 4000}}
	parent.MaxTokens = 20
	child := hand("list_files")
	child.MaxTokens = 20
	h := open(t, 30*time.Second, withDefaults(parent, child)...)
	h.worker("w", newPuppet(), worker.Config{}, delegateTools(t)...)
	endless := strings.Repeat("list_files {}\n", 40) + "say end" // beyond its share of tokens
	r := h.result(h.submit(messages.Task{Agent: "boss", Limits: &messages.Limits{MaxSteps: 5}, Input: messages.TextInput(
		asks(t, nil, "hand", "say cheap", endless) + "\nsay done",
	)}))
	if r.Status != messages.StatusCompleted && (r.Error == nil || r.Error.Code != messages.CodeBudget) {
		t.Fatalf("%+v", r.Error)
	}
	if r.Below == nil || r.Below.Runs != 2 || r.Below.Tokens < 15 || r.Below.Tokens > 4000 {
		t.Errorf("below: %+v", r.Below)
	}
	var failed bool
	for _, a := range r.Actions {
		failed = failed || strings.Contains(a.Output, string(messages.CodeBudget)) || strings.Contains(a.Output, string(messages.CodeMaxSteps))
	}
	if !failed {
		t.Errorf("no child was stopped: %+v", r.Actions)
	}
}

// A worker that is killed while children work, and one that is killed with the parent in hand, cost nothing but time.
func TestDelegateSurvivesWorkers(t *testing.T) {
	h := open(t, 3*time.Second, withDefaults(boss(2), hand())...)
	p := newPuppet()
	_, stop := h.worker("w", p, worker.Config{DrainTimeout: time.Millisecond}, delegateTools(t)...)
	tree := asks(t, nil, "boss", asks(t, nil, "hand", "wait", "wait"), asks(t, nil, "hand", "wait", "say quick"))
	run := h.submit(messages.Task{Agent: "boss", Input: messages.TextInput(tree)})
	for range 3 {
		select {
		case <-p.arrived:
		case <-time.After(patience):
			t.Fatal("the leaves do not work")
		}
	}
	stop()
	close(p.free)
	h.worker("v", p, worker.Config{}, delegateTools(t)...)
	got := answersOf(t, h.result(run))
	if len(got) != 2 || !strings.Contains(got[0].Output, "waited") || !strings.Contains(got[1].Output, "quick") {
		t.Errorf("%+v", got)
	}
	h.noneLeft(run)
}

// Asking why a run waits shows which of its children it waits for.
func TestWhyOfAParent(t *testing.T) {
	h := open(t, 30*time.Second, withDefaults(boss(1), hand())...)
	p := newPuppet()
	h.worker("w", p, worker.Config{}, delegateTools(t)...)
	run := h.submit(messages.Task{Agent: "boss", Input: messages.TextInput(asks(t, nil, "hand", "say one", "wait"))})
	h.until(run, messages.EventDelegated)
	<-p.arrived
	h.result(messages.Ref{Tenant: run.Tenant, Run: record.ChildRun(run, 1, 0)}) // its parent was told before
	st, err := h.client.Status(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	if want := "1 of 2 children: " + record.ChildRun(run, 1, 1); st.WaitsFor != want || st.Status != messages.StatusWaiting {
		t.Errorf("%s, it waits for %q, want %q", st.Status, st.WaitsFor, want)
	}
	close(p.free)
	h.result(run)
}
