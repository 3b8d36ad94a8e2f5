package bus_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/tracing"
	"github.com/longshore-run/longshore/messages/control"
)

// A stream that lost its end while it was followed hands out the same positions again: a feed must say so.
func TestFeedOfAStreamThatWasMadeAgain(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	bustest.PublishRaw(t, nc, bustest.Run(), bustest.Events(bustest.Run(), 1, 3)...)
	for f, err := range events.New(b).Feed(bustest.Context(t), nil) {
		if err != nil {
			if !errors.Is(err, bus.ErrAhead) {
				t.Errorf("got %v, want ErrAhead", err)
			}
			return
		}
		if f.Position == 3 {
			makeEventsAgain(t, nc)
			bustest.PublishRaw(t, nc, bustest.Run(), bustest.Events(bustest.Run(), 1, 1)...)
		}
	}
}

// Consumers that a dispatcher and an exporter share are made again when they are gone.
func TestConsumersAreMadeAgain(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	ctx, cancel := context.WithCancel(bustest.Context(t))
	ends, traced := make(chan messages.Ref, 10), make(chan messages.Ref, 10)
	traces, err := tracing.New(b).Open(ctx, messages.EventRunFinished)
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		_ = events.New(b).RunEnds(ctx, func(_ context.Context, e events.RunEnd) error { ends <- e.Run; return nil })
	})
	done.Go(func() {
		traces.Run(ctx, func(_ context.Context, es []tracing.Event) ([]int, error) {
			for _, e := range es {
				traced <- e.Run
			}
			return nil, nil
		})
	})
	defer done.Wait()
	defer cancel()
	bustest.PublishRaw(t, nc, bustest.Run(), bustest.Event(bustest.Run(), 1, messages.EventRunFinished))
	await := func(run messages.Ref) {
		t.Helper()
		for _, c := range []chan messages.Ref{ends, traced} {
			select {
			case got := <-c:
				if got != run {
					t.Errorf("got %s, want %s", got, run)
				}
			case <-ctx.Done():
				t.Fatalf("the end of %s does not come", run)
			}
		}
	}
	await(bustest.Run())
	makeEventsAgain(t, nc)
	for { // the consumer of traces sees what comes after it was made
		if _, ok, err := b.Partitions(bus.StreamEvents).Lag(ctx, "traces"); err == nil && ok {
			break
		}
		time.Sleep(10 * time.Millisecond)
		if ctx.Err() != nil {
			t.Fatal("there is no consumer")
		}
	}
	other := messages.Ref{Tenant: "acme", Run: "other"}
	bustest.PublishRaw(t, nc, other, bustest.Event(other, 1, messages.EventRunFinished))
	await(other)
}

// Many who announce at once are all heard.
func TestAnnounceTogether(t *testing.T) {
	t.Parallel()
	b, _ := bustest.OpenNew(t)
	const all = 100
	var group sync.WaitGroup
	for range all {
		group.Go(func() {
			if err := events.New(b).AnnounceTo(bustest.Context(t), "acme", control.EventActed, control.Acted{Action: "pause"}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := len(bustest.StoredNumbers(t, b, messages.Ref{Tenant: "acme", Run: messages.NoRun}.EventFilter())); n != all {
		t.Errorf("%d are stored, want %d", n, all)
	}
}

// makeEventsAgain removes the streams with their consumers and makes empty ones.
func makeEventsAgain(t *testing.T, nc *nats.Conn) {
	t.Helper()
	names := bustest.EventStreams(t, nc)
	for _, name := range names {
		if err := bustest.NewJetStream(t, nc).DeleteStream(bustest.Context(t), name); err != nil {
			t.Fatal(err)
		}
	}
	if err := bus.Setup(bustest.Context(t), nc, bus.Streams{Partitions: len(names)}); err != nil {
		t.Fatal(err)
	}
}
