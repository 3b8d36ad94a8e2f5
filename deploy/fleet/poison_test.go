//go:build unix

package fleet_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

// TestPoison works a task whose tool takes its worker down each time, while other runs are in model calls. The
// worker is started again each time, as a supervisor of processes would. A call is answered only after it has lasted
// for a heartbeat: long enough to die with the poison.
func TestPoison(t *testing.T) {
	t.Parallel()
	w := open(t, shortAckWait, func(c *modelCall) reply {
		if c.Task == "crash" {
			return reply{Tool: "crash", Args: "{}"}
		}
		r := turn(c, 2)
		r.Hold = (c.Task == "late") == (c.Turn == 1) // late has got further when the first crash comes
		return r
	})
	start := func() *process { return w.toolWorker("supervised") }
	p := start()
	var neighbours []*watching
	for i := range 16 {
		neighbours = append(neighbours, w.watch(w.submit("neighbour "+strconv.Itoa(i))))
	}
	neighbours = append(neighbours, w.watch(w.submit("late")))
	for range neighbours {
		w.model.next(t)
	}
	poison := w.watch(w.submit("crash", withTools))
	over := make(chan struct{})
	go func() {
		defer close(over)
		for _, g := range append(neighbours, poison) {
			<-g.done
		}
	}()
	beats := w.heartbeats()
	var young, old []*modelCall
	crashes := 0
	for going := true; going; {
		select {
		case <-p.done:
			if p.code() != crashed {
				t.Fatalf("the worker ended with %d", p.code())
			}
			crashes++
			p = start()
		case c := <-w.model.held:
			young = append(young, c)
		case <-beats:
			for _, c := range old {
				c.answer <- turn(c, 2)
			}
			young, old = nil, young
		case <-over:
			going = false
		case <-time.After(patience):
			w.tell(poison.run)
			t.Fatal("nothing more happens")
		}
	}
	r := poison.end()
	if r.Status != messages.StatusFailed || r.Error == nil || r.Error.Code != messages.CodePoison || r.RetryInfo == nil || r.RetryInfo.Attempts != 3 {
		t.Errorf("result: %+v, error %v, %+v", r, r.Error, r.RetryInfo)
	}
	if crashes != 3 { // with others, with others again, and alone in quarantine
		t.Errorf("the worker crashed %d times, want 3", crashes)
	}
	w.isDead(poison.run, "crash")
	died := map[int]int{} // neighbours by how many workers died under them
	for _, g := range neighbours {
		died[len(w.owners(g.run))-1]++
		completed(t, g.end(), "Done: Wrote 1 bytes to step-0.txt")
		log := w.log(g.run)
		if a := log[len(log)-1].Head.Attempt; a != 0 {
			t.Errorf("%s ended with attempt %d", g.run, a)
		}
		for _, e := range log { // two deaths in the open; then the poison is in quarantine, and so are they
			if e.Head.Attempt > 3 {
				t.Errorf("%s was claimed %d times without progress, want at most 3", g.run, e.Head.Attempt)
			}
		}
	}
	t.Logf("neighbours by how often they died with it: %v", died)
}

// isDead checks the dead letter of a run.
func (w *town) isDead(run messages.Ref, text string) {
	w.t.Helper()
	js, err := jetstream.New(w.nc)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	stream, err := js.Stream(ctx, bus.StreamDead)
	if err != nil {
		w.t.Fatal(err)
	}
	m, err := stream.GetLastMsgForSubject(ctx, run.DeadSubject("tools"))
	if err != nil {
		w.t.Fatal(err)
	}
	info, err := stream.Info(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	if n := info.State.Msgs; n != 1 {
		w.t.Errorf("%d dead letters, want 1", n)
	}
	var d messages.Dead
	if err := json.Unmarshal(m.Data, &d); err != nil {
		w.t.Fatal(err)
	}
	task, err := messages.DecodeTask(d.Task)
	if err != nil {
		w.t.Fatalf("the original: %v", err)
	}
	if d.Error.Code != messages.CodePoison || d.Attempts != 3 || d.Subject != run.TaskSubject(messages.PriorityNormal) ||
		task.Input.Text() != text || task.Agent != "tools" || time.Since(d.Time) > time.Minute {
		w.t.Errorf("dead letter: %+v, task %+v", d, task)
	}
}

// TestPanic works a task whose tool panics: the model is told, the operator finds out where, and the worker lives.
func TestPanic(t *testing.T) {
	t.Parallel()
	w := open(t, shortAckWait, func(c *modelCall) reply {
		if c.Turn == 0 {
			return reply{Tool: "panics", Args: "{}"}
		}
		return reply{Text: "It survived."}
	})
	p := w.toolWorker("first")
	g := w.watch(w.submit("work", withTools))
	completed(t, g.end(), "It survived.")
	if line := p.line("tool panicked", "panics.Call", g.run.Run); strings.Contains(line, "the defect") {
		t.Errorf("what a tool panics with may be anything, and is shown: %s", line)
	}
	if r := g.end(); len(r.Actions) != 1 || r.Actions[0].OK || strings.Contains(r.Actions[0].Output, "the defect") {
		t.Errorf("actions: %+v", r.Actions)
	}
	p.signal(syscall.SIGTERM)
	if code := p.wait(); code != 0 {
		t.Errorf("the worker ended with %d", code)
	}
}
