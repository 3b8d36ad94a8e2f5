//go:build unix

package fleet_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
)

// openTree is a fleet in which "root" delegates to "mid" and to a leaf, "mid" to a leaf; a leaf is held until the test
// answers it. Its second result is how commands reach the fleet: over NATS, and over HTTP.
func openTree(t *testing.T) (w *town, over [][]string) {
	t.Helper()
	w = open(t, 30*time.Second, func(c *modelCall) reply {
		task := func(agent, input string) map[string]string { return map[string]string{"agent": agent, "input": input} }
		kind, _, _ := strings.Cut(c.Task, " ")
		switch {
		case kind == "leaf":
			return reply{Hold: true}
		case c.Turn > 0:
			return reply{Text: kind + " is done"}
		case kind == "mid":
			return reply{Tool: "delegate", Args: map[string]any{"tasks": []map[string]string{task("leaf", "leaf of mid")}}}
		default:
			return reply{Tool: "delegate", Args: map[string]any{"tasks": []map[string]string{task("leaf", "leaf of root"), task("delegates", "mid")}}}
		}
	})
	return w, [][]string{{"NATS_URL=" + w.nats}, {"LONGSHORE_URL=" + w.api}}
}

// leaf is the next call of a leaf's model.
func (w *town) leaf() *modelCall {
	w.t.Helper()
	select {
	case c := <-w.model.held:
		return c
	case <-time.After(patience):
		w.t.Fatal("no leaf works")
		return nil
	}
}

// The children of a run are listed, those that work and those that are queued, over NATS and over HTTP.
func TestListChildren(t *testing.T) {
	t.Parallel()
	w, over := openTree(t)
	w.worker("w", "LONGSHORE_SLOTS=1")
	root := w.submit("root", func(task *messages.Task) { task.Agent = "delegates" })
	first := w.leaf() // and the other child is queued
	other := w.submit("leaf alone", func(task *messages.Task) { task.Agent = "leaf" })
	children := []string{record.ChildRun(root, 1, 0), record.ChildRun(root, 1, 1)}
	check := func(when string, want map[string]messages.Status) {
		t.Helper()
		for _, env := range over {
			got := map[string]messages.Status{}
			for line := range strings.Lines(call(t, env, "list", "--parent", root.Run, "-o", "json").stdout) {
				var r control.RunSummary
				if err := json.Unmarshal([]byte(line), &r); err != nil || r.Parent != root.Run {
					t.Errorf("%s: %v in %s", when, err, line)
				}
				got[r.ID] = r.Status
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %v: %s", when, env, diff)
			}
		}
	}
	status := map[string]messages.Status{children[0]: messages.StatusQueued, children[1]: messages.StatusQueued}
	st, err := w.client.Status(t.Context(), messages.Ref{Tenant: root.Tenant, Run: children[0]})
	if err != nil {
		t.Fatal(err)
	}
	busy := children[0]
	if st.Status == messages.StatusQueued { // the worker has the other one, whose child waits in the queue
		busy = children[1]
	}
	if status[busy] = messages.StatusRunning; busy == children[1] {
		status[busy] = messages.StatusWaiting
	}
	check("while they work", status)
	first.answer <- reply{Text: "done"}
	for range 2 {
		w.leaf().answer <- reply{Text: "done"}
	}
	w.watch(root).end()
	w.watch(other).end()
	check("at the end", map[string]messages.Status{children[0]: messages.StatusCompleted, children[1]: messages.StatusCompleted})
	for _, env := range over {
		if got := call(t, env, "status", children[0], "-o", "wide"); !slices.ContainsFunc(strings.Split(got.stdout, "\n"), func(line string) bool {
			return strings.HasPrefix(line, "parent") && strings.HasSuffix(line, root.Run)
		}) {
			t.Errorf("no parent in\n%s%s", got.stdout, got.stderr)
		}
		if got := call(t, env, "list", "--parent", "a b"); got.code != 2 || !strings.Contains(got.stderr, "--parent: must be the id of a run") {
			t.Errorf("a hostile parent: %+v", got)
		}
	}
}
