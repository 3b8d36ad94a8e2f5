//go:build unix

package fleet_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// longAckWait is far from patience: a run that continues before we give up was handed back.
const longAckWait = 6 * patience

// TestDrain stops a worker in a model call. The call may end in time, or be aborted.
func TestDrain(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		timeout string
		answer  bool
		calls   map[string]int
	}{
		{"the call ends", "20s", true, map[string]int{"work 0": 1, "work 1": 1}},
		{"the call is aborted", "300ms", false, map[string]int{"work 0": 2, "work 1": 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := open(t, longAckWait, func(c *modelCall) reply {
				return reply{Hold: true}
			})
			first := w.worker("first", "LONGSHORE_DRAIN_TIMEOUT="+tc.timeout)
			g := w.watch(w.submit("work"))
			call := w.model.next(t)
			w.worker("second")
			first.signal(syscall.SIGTERM)
			first.line("draining: waiting for the runs in hand to end their current step", `"held":1`, `"timeout":"`+tc.timeout+`"`)
			if tc.answer {
				call.answer <- turn(call, 2)
			}
			call = w.model.next(t)
			if code := first.wait(); code != 0 {
				t.Errorf("the worker ended with %d", code)
			}
			if !tc.answer {
				call.answer <- turn(call, 2)
				call = w.model.next(t)
			}
			call.answer <- turn(call, 2)
			completed(t, g.end(), "Done: Wrote 1 bytes to step-0.txt")
			if diff := cmp.Diff(tc.calls, w.model.counts()); diff != "" {
				t.Errorf("model calls: %s", diff)
			}
			w.isReleased(g.run)
		})
	}
}

// TestDrainByCommand drains one of two workers: its process ends by itself with 0, and its run continues with the other.
func TestDrainByCommand(t *testing.T) {
	t.Parallel()
	w := open(t, longAckWait, func(*modelCall) reply { return reply{Hold: true} })
	first := w.worker("first", "LONGSHORE_DRAIN_TIMEOUT=20s")
	g := w.watch(w.submit("work"))
	call := w.model.next(t)
	w.worker("second")
	if _, err := w.client.Fleet().Drain(t.Context(), "unknown"); !errors.Is(err, dispatcher.ErrNoWorker) {
		t.Errorf("drain of an unknown worker: %v", err)
	}
	if s, err := w.client.Fleet().Drain(t.Context(), "first"); err != nil || !s.Draining || s.Name != "first" {
		t.Fatalf("drain: %+v, %v", s, err)
	}
	call.answer <- turn(call, 2)
	call = w.model.next(t)
	if code := first.wait(); code != 0 {
		t.Errorf("the worker ended with %d", code)
	}
	call.answer <- turn(call, 2)
	completed(t, g.end(), "Done: Wrote 1 bytes to step-0.txt")
	w.isReleased(g.run)
}

// isReleased checks that a run was handed back once, without spending an attempt, and taken up again.
func (w *town) isReleased(run messages.Ref) {
	w.t.Helper()
	if diff := cmp.Diff([]string{"first", "second"}, w.owners(run)); diff != "" {
		w.t.Errorf("owners: %s", diff)
	}
	released := 0
	for _, e := range w.log(run) {
		if e.Head.Has(record.KindReleased) {
			released++
			if e.Head.Attempt != 0 {
				w.t.Errorf("attempt %d after the release, want 0", e.Head.Attempt)
			}
		}
		if e.Head.Attempt > 1 {
			w.t.Errorf("attempt %d at entry %d", e.Head.Attempt, e.Seq)
		}
	}
	if released != 1 {
		w.t.Errorf("released %d times, want 1", released)
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	w := open(t, longAckWait, func(*modelCall) reply { return reply{Hold: true} })
	p := w.worker("first", "LONGSHORE_DRAIN_TIMEOUT=1h")
	w.submit("work")
	w.model.next(t)
	p.signal(syscall.SIGTERM)
	p.signal(syscall.SIGINT) // of the same signal twice the system may make one
	if code := p.wait(); code != 130 {
		t.Errorf("the worker ended with %d, want 130", code)
	}
}
