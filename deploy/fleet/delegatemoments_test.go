//go:build unix

package fleet_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/record"
)

// twins delegates to two leaves, which do something at once, and answers with their results.
func twins(c *modelCall) reply {
	if strings.HasPrefix(c.Task, "leaf") {
		return reply{Text: "did " + c.Task}
	}
	if c.Turn > 0 {
		return reply{Text: c.Last}
	}
	return reply{Tool: "delegate", Args: map[string]any{"tasks": []map[string]string{
		{"agent": "leaf", "input": "leaf 0"}, {"agent": "leaf", "input": "leaf 1"},
	}}}
}

// results are those of the children of a run that has completed.
func (w *town) results(r *messages.AgentResult) (out []messages.ChildResult) {
	w.t.Helper()
	text, _ := r.Result.(string)
	if err := json.Unmarshal([]byte(text), &out); err != nil || len(out) != 2 || r.Status != messages.StatusCompleted {
		w.t.Errorf("%s: %s %v %+v", r.ID, r.Status, r.Result, r.Error)
		return nil
	}
	return out
}

// A worker is killed around each message of a delegation. Another one completes the run: no child is made twice, and no end is told twice.
func TestKilledAroundADelegation(t *testing.T) {
	t.Parallel()
	w := open(t, time.Second, twins)
	names := func(kind string) func(published, messages.Ref) bool {
		return func(m published, root messages.Ref) bool { return m.Subject == root.LogSubject() && m.isAppend(kind) }
	}
	child := func(index int, subject func(messages.Ref) string) func(published, messages.Ref) bool {
		return func(m published, root messages.Ref) bool {
			return m.Subject == subject(ref(record.ChildRun(root, 1, index)))
		}
	}
	queued := func(r messages.Ref) string { return r.TaskSubject(messages.PriorityNormal) }
	var victim *process
	var last messages.Ref
	ends := func() {
		t.Helper()
		got := w.results(w.watch(last).end())
		for i, c := range got {
			if c.Status != messages.StatusCompleted || c.Output != fmt.Sprint("did leaf ", i) {
				t.Errorf("child %d: %+v", i, c)
			}
		}
		w.family(last)
	}
	for i, cut := range []struct {
		moment string
		is     func(published, messages.Ref) bool
		how    verdict
	}{
		{"before the children are named", names("delegated"), cutBefore},
		{"after they are named", names("delegated"), cutAfter},
		{"before the second child has a log", child(1, messages.Ref.LogSubject), cutBefore},
		{"before the first child is queued", child(0, queued), cutBefore},
		{"after the second child is queued", child(1, queued), cutAfter},
		{"before an end is told", names("child_ended"), cutBefore},
		{"after an end is told", names("child_ended"), cutAfter},
		{"before the parent is woken", func(m published, root messages.Ref) bool { return m.Subject == root.WakeSubject() }, cutBefore},
		{"before the result", names("tool_returned"), cutBefore},
	} {
		root := messages.Ref{Tenant: messages.DefaultTenant, Run: fmt.Sprint("root-", i)}
		line := newTap(t, w.nats, func(m published) verdict {
			if cut.is(m, root) {
				return cut.how
			}
			return pass
		})
		victim = spawn(t, cut.moment, append(w.workerEnv(fmt.Sprint("w", i)), "NATS_URL="+line.url), binary, "worker")
		victim.line(`"message":"ready"`)
		if i > 0 {
			ends()
		}
		last = w.submit("twins", func(task *messages.Task) { task.ID, task.Agent = root.Run, "delegates" })
		select {
		case <-line.dead:
		case <-time.After(patience):
			w.tell(root)
			t.Fatalf("%s: the worker does not get there", cut.moment)
		}
		victim.kill()
	}
	w.worker("the last one")
	ends()
}

// A dispatcher is killed while a worker makes children. The tree ends without one, and the next one knows all of it.
func TestDelegateWithoutADispatcher(t *testing.T) {
	t.Parallel()
	servers, defs := embeddedtest.Start(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(defs, "delegates.yaml"), []byte(delegatesAgent), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &town{t: t, dir: t.TempDir(), nats: servers.NATSURL, redis: servers.RedisURL, model: newModel(t, twins)}
	start := func(name string) *process {
		p := spawn(t, name, []string{
			"NATS_URL=" + w.nats, "LONGSHORE_HTTP_ADDR=127.0.0.1:0", "LONGSHORE_AUTH=off", "LONGSHORE_ACK_WAIT=" + shortAckWait.String(), "LONGSHORE_AGENTS=" + defs,
		}, binary, "dispatcher")
		p.line(`"message":"ready"`)
		return p
	}
	first := start("first")
	w.connect()
	root := ref("root")
	making, killed := make(chan struct{}), make(chan struct{})
	var once atomic.Bool
	line := newTap(t, w.nats, func(m published) verdict {
		if m.Subject == ref(record.ChildRun(root, 1, 1)).LogSubject() && once.CompareAndSwap(false, true) {
			close(making)
			<-killed
		}
		return pass
	})
	p := spawn(t, "worker", append(w.workerEnv("worker"), "NATS_URL="+line.url), binary, "worker")
	p.line(`"message":"ready"`)
	w.submit("twins", func(task *messages.Task) { task.ID, task.Agent = root.Run, "delegates" })
	select {
	case <-making:
	case <-time.After(patience):
		t.Fatal("no child is made")
	}
	first.kill()
	close(killed)
	eventually(t, "the tree ends without a dispatcher", func() bool {
		ended, err := runlogs.New(w.bus, runlogs.Config{}).Ended(t.Context(), root)
		return err == nil && ended
	})
	start("second")
	for i, c := range w.results(w.watch(root).end()) {
		if c.Status != messages.StatusCompleted || c.Output != fmt.Sprint("did leaf ", i) {
			t.Errorf("child %d: %+v", i, c)
		}
	}
	w.family(root)
	if got := call(t, []string{"NATS_URL=" + w.nats}, "list", "--parent", root.Run, "-o", "json"); strings.Count(got.stdout, `"parent":"root"`) != 2 {
		t.Errorf("%+v", got)
	}
}

// The logs of children are deleted, of one that works and of one in the queue, before their parent was notified of an end. The parent ends, with
// what is known of each.
func TestDelegateLogsAreDeleted(t *testing.T) {
	t.Parallel()
	w, _ := openTree(t, "LONGSHORE_ACK_WAIT="+shortAckWait.String())
	w.worker("w", "LONGSHORE_SLOTS=1")
	root := w.submit("twins", func(task *messages.Task) { task.Agent = "delegates" })
	first := w.model.next(t)
	for i := range 2 {
		child := ref(record.ChildRun(root, 1, i))
		if err := w.bus.Partitions(bus.StreamRuns).Of(child).Clear(t.Context(), child.LogSubject()); err != nil {
			t.Fatal(err)
		}
	}
	first.answer <- reply{Text: "done"}
	g, sweeps := w.watch(root), taskqueue.NewSweeps(w.bus)
	sweep := time.NewTicker(500 * time.Millisecond)
	defer sweep.Stop()
	for late := time.After(patience); ; {
		select {
		case c := <-w.model.held: // of a child that is made again
			c.answer <- reply{Text: "done"}
			continue
		case <-sweep.C:
			if err := sweeps.AskSweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			continue
		case <-g.done:
		case <-late:
		}
		break
	}
	completed(t, g.end(), "twins is done")
	for _, e := range w.log(root) {
		for _, r := range e.Records {
			if r, ok := r.(*record.ChildEnded); ok && r.Status != messages.StatusCompleted { // it was made again, or began anew from its ticket
				if r.Error == nil || r.Error.Code != messages.CodeConflict || !strings.Contains(r.Error.Message, "its log was deleted") {
					t.Errorf("%+v", r)
				}
			}
		}
	}
}

// The deadline of a parent passes while its children work and wait in the queue: all of them end.
func TestDelegateDeadline(t *testing.T) {
	t.Parallel()
	w, _ := openTree(t)
	w.worker("w", "LONGSHORE_SLOTS=1")
	began := time.Now()
	root := w.submit("twins", func(task *messages.Task) { task.Agent, task.Deadline = "delegates", new(began.Add(2*time.Second)) })
	w.model.next(t)
	for _, run := range []messages.Ref{root, ref(record.ChildRun(root, 1, 0)), ref(record.ChildRun(root, 1, 1))} {
		r := w.watch(run).end()
		// A child that did not get the slot before may as well see that its parent has ended.
		if late := r.Error != nil && (r.Error.Code == messages.CodeDeadline || run != root && r.Error.Code == messages.CodeCancelled); !late {
			t.Errorf("%s: %s %+v", run, r.Status, r.Error)
		}
	}
	w.family(root)
}
