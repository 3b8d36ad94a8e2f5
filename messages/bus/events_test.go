package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/events"
)

func TestWatchPutsEventsInOrder(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	e := bustest.Events(bustest.Run(), 1, 6)
	bustest.PublishRaw(t, nc, bustest.Run(), e[0], e[2], e[2], e[0], e[1], e[4], e[5], e[3])
	end := bustest.Event(bustest.Run(), 7, messages.EventRunFinished)
	bustest.PublishRaw(t, nc, bustest.Run(), end, e[5], end)
	if diff := cmp.Diff(append(e, end), bustest.Watched(t, b, bustest.Run(), time.Minute)); diff != "" {
		t.Error(diff)
	}
}

func TestWatchMarksWhatIsMissing(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	bustest.PublishRaw(t, nc, bustest.Run(), bustest.Event(bustest.Run(), 2, messages.EventStepStart), bustest.Event(bustest.Run(), 5, messages.EventStepStart),
		bustest.Event(bustest.Run(), 6, messages.EventRunFinished))
	var got []string
	for _, e := range bustest.Watched(t, b, bustest.Run(), 50*time.Millisecond) {
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
	s, err := bustest.NewJetStream(t, nc).Stream(bustest.Context(t), bustest.EventsIn(b, bustest.Run()))
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
	for _, e := range bustest.Watched(t, b, bustest.Run(), patience) {
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
		if _, err := js.Publish(bustest.Context(t), bustest.EventsAt(t, nc, bustest.Run().EventSubject(messages.EventStepStart)), []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	end := bustest.Event(bustest.Run(), 1, messages.EventRunFinished)
	bustest.PublishRaw(t, nc, bustest.Run(), end)
	if diff := cmp.Diff([]messages.Event{end}, bustest.Watched(t, b, bustest.Run(), time.Minute)); diff != "" {
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
	s, err := bustest.NewJetStream(t, nc).Stream(bustest.Context(t), bustest.EventsIn(b, bustest.Run()))
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
	if all := bustest.StoredNumbers(t, b, bus.EveryEvent); len(all) != 702 {
		t.Errorf("got %d events, want 702", len(all))
	}
	if none := bustest.StoredNumbers(t, b, "events.unknown.>"); len(none) != 0 {
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

// A reader of what comes from now on that loses its consumer before anything has come misses nothing that is stored until it has another one, also
// of a stream that was empty.
func TestATailFromNowOnLosesItsConsumer(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	ctx, run := bustest.Context(t), bustest.Run()
	js := bustest.NewJetStream(t, nc)
	for _, before := range []uint64{0, 2} { // messages
		tail := &bus.Tail{Bus: b, Stream: bustest.EventsIn(b, run), Filter: bus.EveryEvent, Room: 100}
		tail.Start.DeliverPolicy = jetstream.DeliverNewPolicy
		if err := tail.Begin(ctx); err != nil {
			t.Fatal(err)
		}
		stream, err := js.Stream(ctx, tail.Stream)
		if err != nil {
			t.Fatal(err)
		}
		for name := range stream.ConsumerNames(ctx).Name() {
			if err := stream.DeleteConsumer(ctx, name); err != nil {
				t.Fatal(err)
			}
		}
		for n := range 2 {
			bustest.PublishRaw(t, nc, run, bustest.Event(run, int(before)+n+1, messages.EventStepStart))
		}
		for n := range uint64(2) {
			if m, err := tail.Next(ctx, time.Time{}); err != nil || m.Seq != before+n+1 {
				t.Errorf("after %d, message %d is %d: %v", before, n, m.Seq, err)
			}
		}
		tail.Close()
		tail.Rewind(0)
		if m, err := tail.Next(ctx, time.Time{}); err != nil || m.Seq != before+1 {
			t.Errorf("after %d, begun again: %d, %v", before, m.Seq, err)
		}
		tail.Close()
	}
}
