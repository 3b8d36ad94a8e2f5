//go:build unix

package fleet_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// delegatesAgent hands sub-tasks to itself and to the built-in agent.
const delegatesAgent = `apiVersion: longshore.run/v1
kind: Agent
metadata: {name: delegates}
spec:
  tools: [delegate]
  delegate: {agents: [delegates, leaf], depth: 2, total: 50}
---
apiVersion: longshore.run/v1
kind: Agent
metadata: {name: leaf}
spec: {tools: []}
`

// TestDelegateUnderKills kills workers under trees of runs, while parents park, children begin, and ends are told. Each tree gives its
// whole result, and no run in it is made or answered twice.
func TestDelegateUnderKills(t *testing.T) {
	t.Parallel()
	const roots, kills = 6, 6
	slow := make(chan struct{}) // closed when workers are no longer killed
	w := open(t, time.Second, func(c *modelCall) reply {
		kind, _, _ := strings.Cut(c.Task, " ")
		if kind == "leaf" {
			select {
			case <-time.After(50 * time.Millisecond):
			case <-slow:
			case <-c.gone:
			}
			return reply{Text: "did " + c.Task}
		}
		if c.Turn > 0 {
			return reply{Text: c.Last}
		}
		task := func(agent, input string) map[string]string { return map[string]string{"agent": agent, "input": input} }
		if kind == "mid" {
			return reply{Tool: "delegate", Args: map[string]any{"tasks": []map[string]string{task("leaf", "leaf a of "+c.Task), task("leaf", "leaf b of "+c.Task)}}}
		}
		return reply{Tool: "delegate", Args: map[string]any{"tasks": []map[string]string{
			task("leaf", "leaf of "+c.Task), task("delegates", "mid x of "+c.Task), task("delegates", "mid y of "+c.Task),
		}}}
	})
	start := func(n int) *process { return w.worker(fmt.Sprint("w", n), "LONGSHORE_SLOTS=8") }
	workers := []*process{start(0), start(1)}
	var runs []messages.Ref
	for i := range roots {
		runs = append(runs, w.submit(fmt.Sprint("root ", i), func(task *messages.Task) { task.Agent = "delegates" }))
	}
	resumed := w.events(messages.EventRunQueued)
	for n := range kills {
		select {
		case <-resumed: // something continues
		case <-time.After(500 * time.Millisecond): // all that is left waits for the ack wait of a worker that was killed
		}
		workers[n%2].kill()
		workers[n%2] = start(n + 2)
	}
	close(slow)
	for i, run := range runs {
		r := w.watch(run).end()
		if r.Status != messages.StatusCompleted {
			t.Errorf("%s: %s %+v", run, r.Status, r.Error)
			continue
		}
		var got []messages.ChildResult
		text, _ := r.Result.(string)
		if err := json.Unmarshal([]byte(text), &got); err != nil || len(got) != 3 || r.Below == nil || r.Below.Runs != 7 {
			t.Errorf("%s: %v, %q, %+v", run, err, text, r.Below)
			continue
		}
		for _, want := range []string{"leaf of root", "leaf a of mid x of root", "leaf b of mid x of root", "leaf a of mid y of root", "leaf b of mid y of root"} {
			if n := strings.Count(text, fmt.Sprintf("did %s %d", want, i)); n != 1 {
				t.Errorf("%s: %q is there %d times in %s", run, want, n, text)
			}
		}
		w.family(run)
	}
}

// family checks the runs below a run: each has ended and told so once.
func (w *town) family(run messages.Ref) {
	w.t.Helper()
	w.once(run)
	told := map[string]bool{}
	for _, e := range w.log(run) {
		for _, r := range e.Records {
			switch r := r.(type) {
			case *record.ChildEnded:
				if told[r.Run] {
					w.t.Errorf("%s was told twice of %s", run, r.Run)
				}
				told[r.Run] = true
			case *record.Delegated:
				for i := range r.Children {
					w.family(messages.Ref{Tenant: run.Tenant, Run: r.Children[i].Task.ID})
				}
			}
		}
	}
}

// A tree is cancelled while its one worker has a leaf in hand, and is killed: all of it ends.
func TestDelegateIsCancelledByCommand(t *testing.T) {
	t.Parallel()
	w := open(t, time.Second, func(c *modelCall) reply {
		if strings.HasPrefix(c.Task, "leaf") {
			return reply{Hold: true}
		}
		return reply{Tool: "delegate", Args: map[string]any{"tasks": []map[string]string{
			{"agent": "leaf", "input": "leaf a"}, {"agent": "leaf", "input": "leaf b"}, {"agent": "leaf", "input": "leaf c"},
		}}}
	})
	p := w.worker("w", "LONGSHORE_SLOTS=1") // two leaves are queued
	run := w.submit("root", func(task *messages.Task) { task.Agent = "delegates" })
	select {
	case <-w.model.held:
	case <-time.After(patience):
		t.Fatal("no leaf works")
	}
	if _, err := w.client.Cancel(t.Context(), run, "enough"); err != nil {
		t.Fatal(err)
	}
	p.kill() // with the leaf in hand, and the cancel on its way
	w.worker("v", "LONGSHORE_SLOTS=1")
	if r := w.watch(run).end(); r.Status != messages.StatusCancelled {
		t.Errorf("%s %+v", r.Status, r.Error)
	}
	for i := range 3 {
		child := messages.Ref{Tenant: run.Tenant, Run: record.ChildRun(run, 1, i)}
		if r := w.watch(child).end(); r.Status != messages.StatusCancelled {
			t.Errorf("child %d: %s %+v", i, r.Status, r.Error)
		}
	}
	w.family(run)
}
