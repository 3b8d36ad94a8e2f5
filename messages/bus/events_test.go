package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/strict"
)

// watched is what a watch yields until it ends.
func watched(tb testing.TB, b *bus.Bus, run messages.Ref, patience time.Duration) []messages.Event {
	tb.Helper()
	var got []messages.Event
	for e, err := range events.New(b).WatchPatiently(bustest.Context(tb), run, patience) {
		if err != nil {
			tb.Fatalf("after %d events: %v", len(got), err)
		}
		got = append(got, e)
	}
	return got
}

func storedNumbers(tb testing.TB, b *bus.Bus, filter string) []uint64 {
	tb.Helper()
	var got []uint64
	for e, err := range events.New(b).Events(bustest.Context(tb), filter, time.Time{}) {
		if err != nil {
			tb.Fatal(err)
		}
		got = append(got, e.Number())
	}
	return got
}

func TestOutbox(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	out := b.Open(bustest.Run())
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
	if diff := cmp.Diff(want, watched(t, b, bustest.Run(), time.Minute)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(bustest.Numbers(1, 5), storedNumbers(t, b, bustest.Run().EventFilter())); diff != "" {
		t.Errorf("stored: %s", diff)
	}
}

func TestOutboxWithMoreThanItsWindow(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	out := b.Open(bustest.Run())
	out.Publish(bustest.Context(t), 1, slices.Values(bustest.Events(bustest.Run(), 1, 2000)))
	if err := out.Flush(bustest.Context(t)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(bustest.Numbers(1, 2000), storedNumbers(t, b, bus.EveryEvent)); diff != "" {
		t.Error(diff)
	}
}

// An event that is lost is sent again with all that follow, and a watcher sees each once and in order.
func TestOutboxAfterALoss(t *testing.T) {
	for _, answer := range []bool{false, true} {
		t.Run(fmt.Sprintf("of the answer %v", answer), func(t *testing.T) {
			b, line, _ := openLossy(t, bustest.Quickly())
			out := b.Open(bustest.Run())
			out.Publish(bustest.Context(t), 5, slices.Values(bustest.Events(bustest.Run(), 1, 1)))
			if err := out.Flush(bustest.Context(t)); err != nil {
				t.Fatal(err)
			}
			line.lose(bustest.Run().EventSubject(messages.EventStepStart), answer)
			out.Publish(bustest.Context(t), 10, slices.Values(bustest.Events(bustest.Run(), 2, 2)))
			if err := out.Flush(bustest.Context(t)); err != nil {
				t.Fatal(err)
			}
			out.Publish(bustest.Context(t), 15, slices.Values(bustest.Events(bustest.Run(), 3, 5)))
			if err := out.Finish(bustest.Context(t), bustest.Event(bustest.Run(), 6, messages.EventRunFinished)); err != nil {
				t.Fatal(err)
			}
			if lost, _ := line.counts(); lost != 1 || out.Through() != 15 {
				t.Errorf("lost %d, through %d", lost, out.Through())
			}
			if diff := cmp.Diff(append(bustest.Events(bustest.Run(), 1, 5), bustest.Event(bustest.Run(), 6, messages.EventRunFinished)), watched(t, b, bustest.Run(), time.Minute)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(bustest.Numbers(1, 6), storedNumbers(t, b, bus.EveryEvent)); diff != "" {
				t.Errorf("stored: %s", diff)
			}
		})
	}
}

func TestOutboxThatCannotSend(t *testing.T) {
	s := bustest.Start(t)
	b, _ := bustest.Open(t, s, bus.Config{Budget: 300 * time.Millisecond, Answer: 100 * time.Millisecond})
	out := b.Open(bustest.Run())
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
	awaitConnected(t, b)
	if err := out.Flush(bustest.Context(t)); err != nil { // the same outbox goes on
		t.Fatal(err)
	}
	if diff := cmp.Diff(bustest.Numbers(1, 3), storedNumbers(t, b, bus.EveryEvent)); diff != "" {
		t.Error(diff)
	}
}

// awaitConnected waits until a request is answered.
func awaitConnected(tb testing.TB, b *bus.Bus) {
	tb.Helper()
	for {
		_, err := taskqueue.New(b).Holds(bustest.Context(tb), 1)
		if err == nil {
			return
		}
		if bustest.Context(tb).Err() != nil {
			tb.Fatal(err)
		}
	}
}

// Nothing is acknowledged: the patience is the budget, also while what is sent again waits for longer than an answer takes.
func TestOutboxGivesUp(t *testing.T) {
	t.Parallel()
	const budget = 1500 * time.Millisecond
	b, nc := bustest.Open(t, bustest.Start(t), bus.Config{Answer: 5 * time.Millisecond, Budget: budget})
	if err := bustest.NewJetStream(t, nc).DeleteStream(bustest.Context(t), bus.StreamEvents); err != nil {
		t.Fatal(err)
	}
	sent, err := nc.SubscribeSync("events.>") // a subscriber that does not answer
	if err != nil {
		t.Fatal(err)
	}
	out := b.Open(bustest.Run())
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
		out := b.Open(bustest.Run())
		out.Publish(bustest.Context(t), 1, slices.Values([]messages.Event{e}))
		if err := out.Flush(bustest.Context(t)); err == nil || out.Through() != 0 {
			t.Errorf("%s: got %v, through %d", name, err, out.Through())
		}
	}
	out := b.Open(messages.Ref{Tenant: "*", Run: ">"})
	if err := out.Finish(bustest.Context(t), bustest.Event(bustest.Run(), 1, messages.EventRunFinished)); err == nil {
		t.Error("a run that is none: got no error")
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
	out := b.Open(bustest.Run())
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

func TestWatchPutsEventsInOrder(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	e := bustest.Events(bustest.Run(), 1, 6)
	bustest.PublishRaw(t, nc, bustest.Run(), e[0], e[2], e[2], e[0], e[1], e[4], e[5], e[3])
	end := bustest.Event(bustest.Run(), 7, messages.EventRunFinished)
	bustest.PublishRaw(t, nc, bustest.Run(), end, e[5], end)
	if diff := cmp.Diff(append(e, end), watched(t, b, bustest.Run(), time.Minute)); diff != "" {
		t.Error(diff)
	}
}

func TestWatchMarksWhatIsMissing(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	bustest.PublishRaw(t, nc, bustest.Run(), bustest.Event(bustest.Run(), 2, messages.EventStepStart), bustest.Event(bustest.Run(), 5, messages.EventStepStart),
		bustest.Event(bustest.Run(), 6, messages.EventRunFinished))
	var got []string
	for _, e := range watched(t, b, bustest.Run(), 50*time.Millisecond) {
		got = append(got, fmt.Sprintf("%s %s %s", e.Name(), e.Sequence, e.Data))
	}
	want := []string{
		`events_missing 1 {"first":1,"last":1}`, `step_start 2 {"step":2}`,
		`events_missing 4 {"first":3,"last":4}`, `step_start 5 {"step":5}`, `run_finished 6 {"step":6}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWatchMarksWhatHasExpired(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	bustest.PublishRaw(t, nc, bustest.Run(), append(bustest.Events(bustest.Run(), 1, 3), bustest.Event(bustest.Run(), 4, messages.EventRunFinished))...)
	s, err := bustest.NewJetStream(t, nc).Stream(bustest.Context(t), bus.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Purge(bustest.Context(t), jetstream.WithPurgeSequence(3)); err != nil {
		t.Fatal(err)
	}
	info, err := s.GetMsg(bustest.Context(t), 4)
	if err != nil {
		t.Fatal(err)
	}
	const patience = 20 * time.Millisecond
	<-time.After(time.Until(info.Time.Add(13 * patience))) // until it counts as old
	var got []string
	for _, e := range watched(t, b, bustest.Run(), patience) {
		got = append(got, e.Type+" "+e.Sequence)
	}
	want := []string{events.TypeEventsExpired + " 2", "longshore.step_start.v1 3", "longshore.run_finished.v1 4"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWatchSkipsWhatIsNoEvent(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	js := bustest.NewJetStream(t, nc)
	other := bustest.Event(messages.Ref{Tenant: "acme", Run: "other"}, 1, messages.EventStepStart)
	foreign, _ := json.Marshal(other)
	misnamed, _ := json.Marshal(bustest.Event(bustest.Run(), 1, messages.EventRunFinished))
	for _, body := range []string{"", "{", "null", "[]", "{}", `{"sequence":"1"}`, `{"sequence":1}`, string(foreign), string(misnamed), `"\xff"`} {
		if _, err := js.Publish(bustest.Context(t), bustest.Run().EventSubject(messages.EventStepStart), []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	end := bustest.Event(bustest.Run(), 1, messages.EventRunFinished)
	bustest.PublishRaw(t, nc, bustest.Run(), end)
	if diff := cmp.Diff([]messages.Event{end}, watched(t, b, bustest.Run(), time.Minute)); diff != "" {
		t.Error(diff)
	}
	if got := b.Skipped(); got != 10 {
		t.Errorf("skipped %d, want 10", got)
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	bustest.PublishRaw(t, nc, bustest.Run(), bustest.Events(bustest.Run(), 1, 2)...)
	ctx, cancel := context.WithCancelCause(bustest.Context(t))
	defer cancel(nil)
	why := errors.New("enough")
	var errs []error
	n := 0
	for _, err := range events.New(b).Watch(ctx, bustest.Run()) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if n++; n == 2 {
			cancel(why)
		}
	}
	if n != 2 || len(errs) != 1 || !errors.Is(errs[0], why) {
		t.Errorf("got %d events and %v, want 2 and the cause", n, errs)
	}
	for range events.New(b).Watch(bustest.Context(t), bustest.Run()) {
		break // a watcher may leave
	}
}

func TestEventsSince(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	other := messages.Ref{Tenant: "other", Run: "run-1"}
	bustest.PublishRaw(t, nc, bustest.Run(), bustest.Events(bustest.Run(), 1, 700)...)
	bustest.PublishRaw(t, nc, other, bustest.Events(other, 1, 2)...)
	s, err := bustest.NewJetStream(t, nc).Stream(bustest.Context(t), bus.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.GetMsg(bustest.Context(t), 600)
	if err != nil {
		t.Fatal(err)
	}
	var got []uint64
	for e, err := range events.New(b).Events(bustest.Context(t), "events.acme.>", m.Time) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Number())
	}
	if diff := cmp.Diff(bustest.Numbers(600, 700), got); diff != "" {
		t.Error(diff)
	}
	for year, want := range map[int]int{1: 700, 1000: 700, 1600: 700, 1969: 700, 2262: 0, 2300: 0, 9999: 0} {
		n := 0
		for range bustest.Values(t, events.New(b).Events(bustest.Context(t), "events.acme.>", time.Date(year, 12, 31, 0, 0, 0, 0, time.UTC))) {
			n++
		}
		if n != want {
			t.Errorf("since the end of %d: %d events, want %d", year, n, want)
		}
	}
	if all := storedNumbers(t, b, bus.EveryEvent); len(all) != 702 {
		t.Errorf("got %d events, want 702", len(all))
	}
	if none := storedNumbers(t, b, "events.nobody.>"); len(none) != 0 {
		t.Errorf("got %v, want none", none)
	}
}

func TestWatchersOfOneRun(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	done := make(chan []messages.Event)
	for range 20 {
		go func() {
			done <- slices.Collect(bustest.Values(t, events.New(b).Watch(bustest.Context(t), bustest.Run())))
		}()
	}
	want := append(bustest.Events(bustest.Run(), 1, 20), bustest.Event(bustest.Run(), 21, messages.EventRunFinished))
	bustest.PublishRaw(t, nc, bustest.Run(), want...)
	for range 20 {
		if diff := cmp.Diff(want, <-done); diff != "" {
			t.Error(diff)
		}
	}
}
