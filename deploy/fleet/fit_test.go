//go:build unix

package fleet_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
)

// kinds starts workers of two kinds. The model server knows a kind by its key.
type kinds struct {
	w *town
	n int
}

func (k *kinds) start(kind string) *process {
	k.n++
	env := []string{"OPENAI_API_KEY=sk-" + kind, "LONGSHORE_SLOTS=8"}
	if kind == "gpu" {
		env = append(env, "LONGSHORE_WORKER_LABELS=gpu=true")
	}
	return k.w.worker(fmt.Sprintf("%s%d", kind, k.n), env...)
}

// TestFitUnderKills kills and stops workers of two kinds under runs of two kinds, once all workers of the one kind that can
// work half of them. Each run completes once, on workers that fit it, and none is blamed for having been on another.
func TestFitUnderKills(t *testing.T) {
	t.Parallel()
	const each, turns = 60, 6
	const ackWait = time.Second
	calm := make(chan struct{}) // closed when workers are no longer killed or stopped
	var mu sync.Mutex
	var misfits []string
	w := open(t, ackWait, func(c *modelCall) reply {
		if strings.HasPrefix(c.Task, "gpu ") && c.Auth != "Bearer sk-gpu" {
			mu.Lock()
			defer mu.Unlock()
			misfits = append(misfits, fmt.Sprintf("%s, turn %d, by %s", c.Task, c.Turn, c.Auth))
		}
		lasts := time.After(100*time.Millisecond + rand.N(200*time.Millisecond))
		if c.Turn == turns-1 && strings.HasPrefix(c.Task, "gpu ") {
			lasts = nil // none of these ends before, however fast the machine is; the others do, and leave slots free to look
		}
		select {
		case <-lasts:
		case <-calm:
		case <-c.gone:
		}
		return turn(c, turns)
	})
	k := &kinds{w: w}
	gpu := []*process{k.start("gpu"), k.start("gpu")}
	plain := []*process{k.start("plain"), k.start("plain")}
	var runs []messages.Ref
	for i := range each {
		runs = append(runs, w.submit(fmt.Sprint("plain ", i)), w.submit(fmt.Sprint("gpu ", i), func(task *messages.Task) {
			task.Requires = messages.Labels{"gpu": "true"}
		}))
	}
	ended := make(chan string, len(runs)) // what is wrong with one, if anything
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	for _, run := range runs {
		go func() {
			r, err := w.client.Wait(ctx, run)
			switch {
			case err != nil:
				ended <- fmt.Sprintf("%s: %v", run, err)
			case r.Status != messages.StatusCompleted:
				ended <- fmt.Sprintf("%s: %s %v", run, r.Status, r.Error)
			default:
				ended <- ""
			}
		}()
	}
	w.model.called(t, "gpu ", 10)
	pause := func(p *process) func() {
		p.signal(syscall.SIGSTOP)
		return func() { p.signal(syscall.SIGCONT) }
	}
	gpu[0].kill()
	gpu[0] = k.start("gpu")
	proceed := pause(gpu[1])
	passes(ackWait + 500*time.Millisecond)
	proceed()
	proceed = pause(plain[0])
	plain[1].kill()
	plain[1] = k.start("plain")
	passes(ackWait)
	proceed()

	waits := w.events(messages.EventRunWaiting)
	gpu[0].kill()
	gpu[1].kill() // no run of half of them can continue
	for range 3 {
		select {
		case <-waits:
		case <-time.After(patience):
			t.Fatal("no run waits for a worker that fits")
		}
	}
	gpu[0], gpu[1] = k.start("gpu"), k.start("gpu")
	proceed = pause(gpu[0])
	plain[0].kill()
	plain[0] = k.start("plain")
	passes(ackWait + 500*time.Millisecond)
	proceed()
	close(calm)

	for range runs {
		if wrong := <-ended; wrong != "" {
			t.Error(wrong)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, m := range misfits {
		t.Errorf("a model call by a worker that does not fit: %s", m)
	}
	parked := 0
	for _, run := range runs {
		w.once(run)
		n := w.blameless(run)
		parked += n
	}
	w.isEmpty(bus.StreamDead, ">")
	w.isEmpty(bus.StreamSemaphores, "lines.wait."+queue.WorkerList+".>")
	t.Logf("%d parks of %d runs that need a gpu", parked, each)
}

// called waits for so many calls of tasks that begin in some way.
func (m *modelServer) called(t *testing.T, task string, n int) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; passes(10 * time.Millisecond) {
		seen := 0
		for call, times := range m.counts() {
			if strings.HasPrefix(call, task) {
				seen += times
			}
		}
		if seen >= n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d calls of %q come, want %d", seen, task, n)
		}
	}
}

// events receives each event of a name from now on.
func (w *town) events(name string) <-chan *nats.Msg {
	w.t.Helper()
	out := make(chan *nats.Msg, 1024)
	if _, err := w.nc.ChanSubscribe("events.*.*."+name, out); err != nil {
		w.t.Fatal(err)
	}
	if err := w.nc.Flush(); err != nil {
		w.t.Fatal(err)
	}
	return out
}

// blameless checks that no park for another worker costs an attempt, and counts those parks.
func (w *town) blameless(run messages.Ref) (parks int) {
	w.t.Helper()
	before, now := 0, 0
	for _, e := range w.log(run) {
		if slices.Contains(e.Head.Kinds, record.KindClaimed) {
			before = now
		}
		if now = e.Head.Attempt; e.Head.Has(record.KindParked) && e.Head.Waits == queue.ParkWorker {
			if parks++; now > before {
				w.t.Errorf("%s: attempt %d after a park for another worker, %d before its claim", run, now, before)
			}
		}
	}
	return parks
}

// isEmpty checks that a stream has no message under a subject.
func (w *town) isEmpty(stream, filter string) {
	w.t.Helper()
	js, err := jetstream.New(w.nc)
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := js.Stream(w.t.Context(), stream)
	if err != nil {
		w.t.Fatal(err)
	}
	info, err := s.Info(w.t.Context(), jetstream.WithSubjectFilter(filter))
	if err != nil {
		w.t.Fatal(err)
	}
	for subject := range info.State.Subjects {
		w.t.Errorf("%s has %s", stream, subject)
	}
}

// A worker that dies between the record that ends a run's wait for a worker and the wake-up leaves the wake-up to the next
// worker that looks, and not to the sweep.
func TestKillBeforeWakeUpOfFit(t *testing.T) {
	t.Parallel()
	w := open(t, shortAckWait, func(c *modelCall) reply { return turn(c, 2) })
	(&kinds{w: w}).start("plain")
	waits := w.events(messages.EventRunWaiting)
	g := w.watch(w.submit("work", func(task *messages.Task) { task.Requires = messages.Labels{"gpu": "true"} }))
	select {
	case <-waits:
	case <-time.After(patience):
		t.Fatal("the run does not wait")
	}
	line := newTap(t, w.nats, func(m published) verdict {
		if m.isAppend(string(record.KindSessionGranted)) {
			return cutAfter
		}
		return pass
	})
	first := w.worker("first", "LONGSHORE_WORKER_LABELS=gpu=true", "NATS_URL="+line.url)
	select {
	case <-line.dead:
	case <-time.After(patience):
		t.Fatal("the worker does not wake the run")
	}
	first.kill()
	w.worker("second", "LONGSHORE_WORKER_LABELS=gpu=true")
	completed(t, g.end(), "Done: Wrote 1 bytes to step-0.txt")
	w.isEmpty(bus.StreamSemaphores, "lines.wait."+queue.WorkerList+".>")
}
