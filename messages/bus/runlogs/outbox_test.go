package runlogs_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/strict"
)

func TestOutbox(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	out := bustest.Logs(b).Open(bustest.Run())
	if got := out.Through(); got != 0 {
		t.Errorf("at first: through %d", got)
	}
	out.Publish(bustest.Context(t), 10, slices.Values(bustest.Events(bustest.Run(), 1, 3)))
	out.Publish(bustest.Context(t), 20, slices.Values([]messages.Event(nil)))
	out.Publish(bustest.Context(t), 30, slices.Values(bustest.Events(bustest.Run(), 4, 4)))
	if err := out.Flush(bustest.Context(t)); err != nil {
		t.Fatal(err)
	}
	if got := out.Through(); got != 30 {
		t.Errorf("after the flush: through %d, want 30", got)
	}
	out.Publish(bustest.Context(t), 40, slices.Values([]messages.Event(nil)))
	if got := out.Through(); got != 40 {
		t.Errorf("after an entry without events: through %d, want 40", got)
	}
	finished := bustest.Event(bustest.Run(), 5, messages.EventRunFinished)
	for range 3 { // by any of them
		if err := out.Finish(bustest.Context(t), finished); err != nil {
			t.Fatal(err)
		}
	}
	want := append(bustest.Events(bustest.Run(), 1, 4), finished)
	if diff := cmp.Diff(want, bustest.Watched(t, b, bustest.Run(), time.Minute)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(bustest.Numbers(1, 5), bustest.StoredNumbers(t, b, bustest.Run().EventFilter())); diff != "" {
		t.Errorf("stored: %s", diff)
	}
}

func TestOutboxWithMoreThanItsWindow(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	out := bustest.Logs(b).Open(bustest.Run())
	out.Publish(bustest.Context(t), 1, slices.Values(bustest.Events(bustest.Run(), 1, 2000)))
	if err := out.Flush(bustest.Context(t)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(bustest.Numbers(1, 2000), bustest.StoredNumbers(t, b, bus.EveryEvent)); diff != "" {
		t.Error(diff)
	}
}

// An event that is lost is sent again with all that follow, and a watcher sees each once and in order.
func TestOutboxAfterALoss(t *testing.T) {
	for _, answer := range []bool{false, true} {
		t.Run(fmt.Sprintf("of the answer %v", answer), func(t *testing.T) {
			b, line, _ := bustest.OpenLossy(t, bustest.Quickly())
			out := bustest.Logs(b).Open(bustest.Run())
			out.Publish(bustest.Context(t), 5, slices.Values(bustest.Events(bustest.Run(), 1, 1)))
			if err := out.Flush(bustest.Context(t)); err != nil {
				t.Fatal(err)
			}
			line.Lose(b.Partitions(bus.StreamEvents).Subject(bustest.Run(), bustest.Run().EventSubject(messages.EventStepStart)), answer)
			out.Publish(bustest.Context(t), 10, slices.Values(bustest.Events(bustest.Run(), 2, 2)))
			if err := out.Flush(bustest.Context(t)); err != nil {
				t.Fatal(err)
			}
			out.Publish(bustest.Context(t), 15, slices.Values(bustest.Events(bustest.Run(), 3, 5)))
			if err := out.Finish(bustest.Context(t), bustest.Event(bustest.Run(), 6, messages.EventRunFinished)); err != nil {
				t.Fatal(err)
			}
			if lost, _ := line.Counts(); lost != 1 || out.Through() != 15 {
				t.Errorf("lost %d, through %d", lost, out.Through())
			}
			if diff := cmp.Diff(append(bustest.Events(bustest.Run(), 1, 5), bustest.Event(bustest.Run(), 6, messages.EventRunFinished)), bustest.Watched(t, b, bustest.Run(), time.Minute)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(bustest.Numbers(1, 6), bustest.StoredNumbers(t, b, bus.EveryEvent)); diff != "" {
				t.Errorf("stored: %s", diff)
			}
		})
	}
}

func TestOutboxThatCannotSend(t *testing.T) {
	s := bustest.Start(t)
	b, _ := bustest.Open(t, s, bus.Config{Budget: 300 * time.Millisecond, Answer: 100 * time.Millisecond})
	out := bustest.Logs(b).Open(bustest.Run())
	out.Publish(bustest.Context(t), 7, slices.Values(bustest.Events(bustest.Run(), 1, 1)))
	if err := out.Flush(bustest.Context(t)); err != nil {
		t.Fatal(err)
	}
	s.StopNATS()
	out.Publish(bustest.Context(t), 10, slices.Values(bustest.Events(bustest.Run(), 2, 3)))
	if err := out.Flush(bustest.Context(t)); err == nil {
		t.Error("flush: got no error")
	}
	if got := out.Through(); got != 7 {
		t.Errorf("through %d, want 7", got)
	}
	ctx, cancel := context.WithCancelCause(bustest.Context(t))
	why := errors.New("enough")
	cancel(why)
	if err := out.Flush(ctx); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
	if err := s.StartNATS(); err != nil {
		t.Fatal(err)
	}
	bustest.AwaitConnected(t, b)
	if err := out.Flush(bustest.Context(t)); err != nil { // the same outbox continues
		t.Fatal(err)
	}
	if diff := cmp.Diff(bustest.Numbers(1, 3), bustest.StoredNumbers(t, b, bus.EveryEvent)); diff != "" {
		t.Error(diff)
	}
}

// Nothing is acknowledged: the patience is the budget, also while what is sent again waits for longer than an answer takes.
func TestOutboxGivesUp(t *testing.T) {
	t.Parallel()
	const budget = 1500 * time.Millisecond
	b, nc := bustest.Open(t, bustest.Start(t), bus.Config{Answer: 5 * time.Millisecond, Budget: budget})
	if err := bustest.NewJetStream(t, nc).DeleteStream(bustest.Context(t), bustest.EventsIn(b, bustest.Run())); err != nil {
		t.Fatal(err)
	}
	sent, err := nc.SubscribeSync(b.Partitions(bus.StreamEvents).Subject(bustest.Run(), "events.>")) // a subscriber that does not answer
	if err != nil {
		t.Fatal(err)
	}
	out := bustest.Logs(b).Open(bustest.Run())
	begun := time.Now()
	out.Publish(bustest.Context(t), 1, slices.Values(bustest.Events(bustest.Run(), 1, 2)))
	err = out.Flush(bustest.Context(t))
	if took := time.Since(begun); err == nil || !strings.Contains(err.Error(), "no acknowledgement for 1.5s") || took < budget {
		t.Errorf("after %v: %v", took, err)
	}
	if n, _, err := sent.Pending(); err != nil || n < 4 || n > 60 {
		t.Errorf("%d messages were sent, %v", n, err)
	}
}

func TestOutboxRefusesForeignEvents(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	for name, e := range map[string]messages.Event{
		"type":     {Type: "longshore.*.v1", Sequence: "1"},
		"any type": {Type: ">", Sequence: "1"},
	} {
		out := bustest.Logs(b).Open(bustest.Run())
		out.Publish(bustest.Context(t), 1, slices.Values([]messages.Event{e}))
		if err := out.Flush(bustest.Context(t)); err == nil || out.Through() != 0 {
			t.Errorf("%s: got %v, through %d", name, err, out.Through())
		}
	}
	out := bustest.Logs(b).Open(messages.Ref{Tenant: "*", Run: ">"})
	if err := out.Finish(bustest.Context(t), bustest.Event(bustest.Run(), 1, messages.EventRunFinished)); err == nil {
		t.Error("not a run: got no error")
	}
}

// Events of the outbox are stored once in order although the server goes away, and a watcher that was there before
// sees each of them.
func TestEventsOverARestart(t *testing.T) {
	t.Parallel()
	s := bustest.Start(t)
	b, nc := bustest.Open(t, s, bustest.Quickly())
	watcher, _ := bustest.Open(t, s, bustest.Quickly())
	const n = 3000
	got := make(chan []messages.Event, 1)
	first := make(chan struct{})
	go func() {
		var all []messages.Event
		for e, err := range events.New(watcher).WatchPatiently(bustest.Context(t), bustest.Run(), 20*time.Second) {
			if err != nil {
				t.Error(err)
				break
			}
			if all = append(all, e); len(all) == 1 {
				close(first)
			}
		}
		got <- all
	}()
	ends := make(chan messages.Event)
	go func() {
		for e := range bustest.Values(t, events.New(watcher).Follow(bustest.Context(t), "events.*.*."+messages.EventRunFinished)) {
			ends <- e
			if e.Ref() == bustest.Run() {
				return
			}
		}
	}()
	for follows := false; !follows; { // until the follower is there
		probe := messages.Ref{Tenant: "acme", Run: messages.NewID(time.Now())}
		bustest.PublishRaw(t, nc, probe, bustest.Event(probe, 1, messages.EventRunFinished))
		select {
		case <-ends:
			follows = true
		case <-time.After(10 * time.Millisecond):
		}
	}
	out := bustest.Logs(b).Open(bustest.Run())
	out.Publish(bustest.Context(t), 1, slices.Values(bustest.Events(bustest.Run(), 1, 1)))
	<-first
	restarted := make(chan error, 1)
	for i := 2; i < n; i++ {
		if i == n/2 {
			go func() {
				s.StopNATS()
				restarted <- s.StartNATS()
			}()
		}
		out.Publish(bustest.Context(t), uint64(i), slices.Values(bustest.Events(bustest.Run(), i, i)))
	}
	if err := <-restarted; err != nil {
		t.Fatal(err)
	}
	if err := out.Finish(bustest.Context(t), bustest.Event(bustest.Run(), n, messages.EventRunFinished)); err != nil {
		t.Fatal(err)
	}
	all := <-got
	if diff := cmp.Diff(append(bustest.Events(bustest.Run(), 1, n-1), bustest.Event(bustest.Run(), n, messages.EventRunFinished)), all); diff != "" {
		t.Errorf("watched: %s", strict.Clip(diff, 4000))
	}
	for e := range ends {
		if e.Ref() == bustest.Run() {
			break
		}
	}
}
