package worker_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/worker"
)

// wrongClock is a machine's clock that may be off.
type wrongClock struct{ ahead atomic.Int64 }

func (c *wrongClock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// A worker whose clock is an hour off judges deadlines and expiries by the server's time.
func TestDeadlinesOfAWrongClock(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"ahead": time.Hour, "behind": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := openSite(t, &messages.Approve{Expires: messages.Duration(10 * time.Minute)})
			var clock wrongClock
			clock.ahead.Store(int64(ahead))
			s.here, s.maxSkew = clock.now, 2*time.Hour
			s.add("w")
			run := s.submit(messages.Task{Agent: "wrecker", Input: messages.TextInput("wreck it"), Deadline: new(time.Now().Add(20 * time.Minute).UTC())})
			asked := s.asked(run)
			if left := time.Until(*asked.Until); left < 8*time.Minute || left > 11*time.Minute {
				t.Errorf("the approval expires in %v", left)
			}
			if _, err := s.client.Approvals().Approve(t.Context(), run, dispatcher.Decision{Call: asked.Call, Hash: asked.Hash}); err != nil {
				t.Fatal(err)
			}
			if r := s.result(run); !r.Success {
				t.Errorf("result: %+v", r.Error)
			}
			late := s.submit(messages.Task{Agent: "wrecker", Input: messages.TextInput("wreck it"), Deadline: new(time.Now().Add(time.Second).UTC())})
			if r := s.result(late); r.Error == nil || r.Error.Code != messages.CodeDeadline {
				t.Errorf("after its deadline: %+v", r)
			}
		})
	}
}

// A worker whose clock is too far off takes nothing new, and leaves it to others, until its clock is set.
func TestWrongClockTakesNothing(t *testing.T) {
	h := open(t, 3*time.Second)
	var clock wrongClock
	clock.ahead.Store(int64(time.Hour))
	h.here, h.maxSkew = clock.now, 30*time.Second
	h.worker("wrong", script(t, hello), worker.Config{})
	first := h.submit(messages.Task{ID: "first", Input: messages.TextInput("hello")})
	h.here = nil
	_, stop := h.worker("right", script(t, hello), worker.Config{})
	if r := h.result(first); !r.Success || h.workedBy(first) != "right" {
		t.Errorf("worked by %s: %+v", h.workedBy(first), r)
	}
	stop()
	second := h.submit(messages.Task{ID: "second", Input: messages.TextInput("hello")})
	clock.ahead.Store(0)
	if r := h.result(second); !r.Success || h.workedBy(second) != "wrong" {
		t.Errorf("worked by %s: %+v", h.workedBy(second), r)
	}
}

// workedBy is the worker that claimed a run last.
func (h *house) workedBy(run messages.Ref) (name string) {
	h.t.Helper()
	for e, err := range h.logs().Read(h.t.Context(), run, 0, runlog.Tail) {
		if err != nil {
			h.t.Fatal(err)
		}
		for _, r := range e.Records {
			if c, ok := r.(*record.Claimed); ok {
				name = c.Worker
			}
		}
	}
	return name
}
