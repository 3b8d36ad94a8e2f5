//go:build unix

package fleet_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
)

// openTree is a fleet in which "twins" delegates to two leaves, and "root" delegates to "mid" and to a leaf, "mid" to a leaf; a leaf is held until the test
// answers it. Its second result is how commands reach the fleet: over NATS, and over HTTP.
func openTree(t *testing.T, more ...string) (w *town, over [][]string) {
	t.Helper()
	w = open(t, 30*time.Second, func(c *modelCall) reply {
		task := func(agent, input string) map[string]string { return map[string]string{"agent": agent, "input": input} }
		kind, _, _ := strings.Cut(c.Task, " ")
		switch {
		case kind == "leaf":
			return reply{Hold: true}
		case c.Turn > 0:
			return reply{Text: kind + " is done"}
		case kind == "twins":
			return reply{Tool: "delegate", Args: map[string]any{"tasks": []map[string]string{task("leaf", "leaf 0"), task("leaf", "leaf 1")}}}
		case kind == "mid":
			return reply{Tool: "delegate", Args: map[string]any{"tasks": []map[string]string{task("leaf", "leaf of mid")}}}
		default:
			return reply{Tool: "delegate", Args: map[string]any{"tasks": []map[string]string{task("leaf", "leaf of root"), task("delegates", "mid")}}}
		}
	}, more...)
	return w, [][]string{{"NATS_URL=" + w.nats}, {"LONGSHORE_URL=" + w.api}}
}

// The children of a run are listed, those that work and those that are queued, over NATS and over HTTP.
func TestListChildren(t *testing.T) {
	t.Parallel()
	w, over := openTree(t)
	w.worker("w", "LONGSHORE_SLOTS=1")
	root := w.submit("twins", func(task *messages.Task) { task.Agent = "delegates" })
	first := w.model.next(t) // and the other child is queued
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
	busy := slices.Index([]string{"leaf 0", "leaf 1"}, first.Task)
	check("while they work", map[string]messages.Status{children[busy]: messages.StatusRunning, children[1-busy]: messages.StatusQueued})
	first.answer <- reply{Text: "done"}
	for range 2 { // the other one, and the run that is no child
		w.model.next(t).answer <- reply{Text: "done"}
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
		if got := call(t, env, "__complete", "list", "--parent", root.Run[:8]); !strings.HasPrefix(got.stdout, root.Run+"\t") && !strings.Contains(got.stdout, "\n"+root.Run+"\t") {
			t.Errorf("the shell offers %s", got.stdout)
		}
		if got := call(t, env, "list", "--parent", "a b"); got.code != 2 || !strings.Contains(got.stderr, "--parent: must be the id of a run") {
			t.Errorf("a hostile parent: %+v", got)
		}
	}
}

// The status of a run and what it waits for show all runs below it, over NATS and over HTTP.
func TestStatusAndWhyShowTheTree(t *testing.T) {
	t.Parallel()
	w, over := openTree(t)
	w.worker("w")
	root := w.submit("root", func(task *messages.Task) { task.Agent = "delegates" })
	leaf, mid := record.ChildRun(root, 1, 0), record.ChildRun(root, 1, 1)
	deep := record.ChildRun(ref(mid), 1, 0)
	held := []*modelCall{w.model.next(t), w.model.next(t)}
	for _, env := range over {
		got := call(t, env, "why", root.Run)
		want := []string{
			"It waits for 2 of 2 children: " + leaf + ", " + mid, "› " + leaf + ": Worker w works it, in step 1", "› " + mid + ": It waits for 1 of 1 children: " + deep,
			"›› " + deep + ": Worker w works it, in step 1",
		}
		for i, line := range strings.Split(strings.TrimSpace(got.stdout), "\n") {
			if i >= len(want) || !strings.HasPrefix(line, want[i]) {
				t.Errorf("why says %q, want %q", got.stdout, want)
				break
			}
		}
		var y control.Why
		if raw := call(t, env, "why", root.Run, "-o", "json").stdout; json.Unmarshal([]byte(raw), &y) != nil || len(y.Children) != 2 || len(y.Children[1].Children) != 1 {
			t.Errorf("as JSON %s", raw)
		}
	}
	tree := func(status map[string]messages.Status) {
		t.Helper()
		for _, env := range over {
			got := call(t, env, "status", root.Run)
			for run, marks := range map[string]string{leaf: "›", mid: "›", deep: "››"} {
				if want := fmt.Sprintf("%s %s %s agent ", marks, run, status[run]); !strings.Contains(got.stdout, want) {
					t.Errorf("no %q in\n%s%s", want, got.stdout, got.stderr)
				}
			}
		}
	}
	tree(map[string]messages.Status{leaf: messages.StatusRunning, mid: messages.StatusWaiting, deep: messages.StatusRunning})
	for _, c := range held {
		c.answer <- reply{Text: "done"}
	}
	w.watch(root).end()
	tree(map[string]messages.Status{leaf: messages.StatusCompleted, mid: messages.StatusCompleted, deep: messages.StatusCompleted})
}

// Children fill the queue of their tenant, so that a new task is refused; they themselves are not, and their parent continues.
func TestChildrenAreNotRefused(t *testing.T) {
	t.Parallel()
	w, over := openTree(t)
	if got := call(t, over[0], "quotas", "set", "tenant", "default", "--max-queued", "1"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	w.worker("w", "LONGSHORE_SLOTS=1")
	root := w.submit("twins", func(task *messages.Task) { task.Agent = "delegates" })
	first := w.model.next(t) // and the other child is queued
	for _, env := range over {
		if got := call(t, env, "submit", "leaf alone", "--agent", "leaf"); got.code == 0 || !strings.Contains(got.stdout+got.stderr, "1 may be") {
			t.Errorf("with a child in the queue: %+v", got)
		}
	}
	first.answer <- reply{Text: "done"}
	w.model.next(t).answer <- reply{Text: "done"}
	completed(t, w.watch(root).end(), "twins is done")
}

// A run is watched with all below it, as they come and afterwards, over NATS and over HTTP. What is not kept ends no watch late.
func TestWatchChildren(t *testing.T) {
	t.Parallel()
	w, over := openTree(t)
	w.worker("w")
	root := w.submit("root", func(task *messages.Task) { task.Agent = "delegates" })
	leaf, mid := record.ChildRun(root, 1, 0), record.ChildRun(root, 1, 1)
	deep := record.ChildRun(ref(mid), 1, 0)
	var texts, lines []*process
	for i, env := range over {
		texts = append(texts, spawn(t, fmt.Sprint("text ", i), env, binary, "watch", root.Run, "--children"))
		lines = append(lines, spawn(t, fmt.Sprint("json ", i), env, binary, "watch", root.Run, "--children", "-o", "json"))
		texts[i].line("›› …"+deep[len(deep)-6:], "for agent leaf") // while it works
	}
	for range 2 {
		w.model.next(t).answer <- reply{Text: "done"}
	}
	var want map[string][]string
	for i := range over {
		if code := texts[i].wait(); code != 0 || texts[i].out.String() != "root is done\n" {
			t.Errorf("%s: %d, %q\n%s", texts[i].name, code, texts[i].out.String(), strings.Join(texts[i].log(), "\n"))
		}
		if code := lines[i].wait(); code != 0 {
			t.Errorf("%s: %d\n%s", lines[i].name, code, strings.Join(lines[i].log(), "\n"))
		}
		got := treeOf(t, lines[i].out.String())
		if want == nil {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", lines[i].name, diff)
		}
	}
	if len(want) != 4 || want[root.Run] == nil || want[leaf] == nil || want[mid] == nil || want[deep] == nil {
		t.Errorf("the runs are %v", want)
	}
	url := w.api + "/v1/tasks/" + root.Run + "/events?children=true"
	if body := w.get(url, http.StatusOK); !strings.HasSuffix(body, "id: end\nevent: tree_finished\ndata: {\"run\":\""+root.Run+"\"}\n\n") || strings.Count(body, "\nid: ") != 1 {
		t.Errorf("the stream ends with %q", body[max(0, len(body)-200):])
	}
	w.get(url+"&after=end", http.StatusNoContent)
	for query, field := range map[string]string{"after=3": "after", "deltas=true": "children", "format=ag-ui": "children"} {
		if body := w.get(url+"&"+query, http.StatusBadRequest); !containsAll(body, []string{"cannot be combined with", `"field":"` + field + `"`}) {
			t.Errorf("%s: %s", query, body)
		}
	}

	// Retention and the age limit take all of a child.
	for stream, subject := range map[string]string{w.bus.Partitions(bus.StreamEvents).NameOf(ref(mid)): ref(mid).EventFilter(), w.bus.Partitions(bus.StreamRuns).NameOf(ref(mid)): ref(mid).LogSubject()} {
		if err := w.bus.Stream(stream).Clear(t.Context(), subject); err != nil {
			t.Fatal(err)
		}
	}
	for i, env := range over {
		texts[i] = spawn(t, fmt.Sprint("text after the end ", i), env, binary, "watch", root.Run, "--children")
	}
	for _, p := range texts {
		if code, log := p.wait(), strings.Join(p.log(), "\n"); code != 0 || !strings.Contains(log, "events 1 to 1 are no longer kept") {
			t.Errorf("%s: %d\n%s", p.name, code, log)
		}
	}
}

func ref(run string) messages.Ref { return messages.Ref{Tenant: messages.DefaultTenant, Run: run} }

// treeOf are the names of the events of each run, of a watch with -o json. The events of a run are in order, and those of a run below
// come after the event that names it.
func treeOf(t *testing.T, out string) map[string][]string {
	t.Helper()
	tree, named := map[string][]string{}, map[string]bool{}
	for line := range strings.Lines(out) {
		var e messages.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if len(tree) > 0 && tree[e.Subject] == nil && !named[e.Subject] {
			t.Errorf("%s begins before it is named", e.Subject)
		}
		if tree[e.Subject] = append(tree[e.Subject], e.Name()); e.Number() != uint64(len(tree[e.Subject])) {
			t.Errorf("event %d of %s is %s", len(tree[e.Subject]), e.Subject, line)
		}
		var d messages.DelegatedData
		if e.Name() == messages.EventDelegated && json.Unmarshal(e.Data, &d) == nil {
			for _, c := range d.Children {
				named[c.Run] = true
			}
		}
	}
	for run, names := range tree {
		if names[len(names)-1] != messages.EventRunFinished {
			t.Errorf("%s: %v", run, names)
		}
	}
	return tree
}

// get reads all of an answer.
func (w *town) get(url string, status int) string {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		w.t.Errorf("%s: %d %v, want %d\n%s", url, resp.StatusCode, err, status, body)
	}
	return string(body)
}
