package bus_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/events"
)

// openHub runs a hub until the test ends, or stop is called with the reason.
func openHub(t *testing.T, b *bus.Bus) (h *events.Hub, stop func(error)) {
	t.Helper()
	h = events.New(b).NewHub()
	return h, runHub(t, h)
}

func runHub(t *testing.T, h *events.Hub) (stop func(error)) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	t.Cleanup(func() {
		cancel(nil)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return cancel
}

// following is how many subscriptions there are to all events.
func following(t *testing.T, js jetstream.JetStream) (n int) {
	t.Helper()
	stream, err := js.Stream(bustest.Context(t), bustest.EventStreams(t, js.Conn())[0])
	if err != nil {
		t.Fatal(err)
	}
	list := stream.ListConsumers(bustest.Context(t))
	for c := range list.Info() {
		if c.PushBound && c.Config.FilterSubject == bus.EveryEvent {
			n++
		}
	}
	if err := list.Err(); err != nil {
		t.Fatal(err)
	}
	return n
}

// A hub receives the events of the fleet only while there is a watcher. A watcher that comes as it begins or ends to do so misses nothing.
func TestHubFollowsForWatchers(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	js := bustest.NewJetStream(t, nc)
	h := events.New(b).NewHub()
	h.Linger = time.Millisecond
	runHub(t, h)
	for i := range 10 {
		for ctx := bustest.Context(t); i < 3 && following(t, js) > 0; {
			if ctx.Err() != nil {
				t.Fatal("the hub follows for no watcher")
			}
		}
		run := messages.Ref{Tenant: "acme", Run: fmt.Sprintf("run-%d", i)}
		bustest.PublishRaw(t, nc, run, bustest.Events(run, 1, 2)...)
		next := uint64(0)
		for e, err := range h.Watch(bustest.Context(t), run) {
			if err != nil {
				t.Fatal(err)
			}
			if next++; e.Number() != next {
				t.Fatalf("event %d came after %d", e.Number(), next-1)
			}
			switch next {
			case 2:
				bustest.PublishRaw(t, nc, run, bustest.Events(run, 3, 3)...)
			case 3:
				if n := following(t, js); n != 1 {
					t.Errorf("%d subscriptions while there is a watcher, want 1", n)
				}
				bustest.PublishRaw(t, nc, run, bustest.Event(run, 4, messages.EventRunFinished))
			}
		}
		if next != 4 {
			t.Fatalf("%d events, want 4", next)
		}
	}
}

// A watcher that is slower than the hub's room misses nothing: it reads from the stream what was dropped.
func TestHubServesSlowWatchers(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	h, _ := openHub(t, b)
	run := bustest.Run()
	const n = 400
	bustest.PublishRaw(t, nc, run, bustest.Events(run, 1, 10)...)
	next := uint64(0)
	for e, err := range h.Watch(bustest.Context(t), run) {
		if err != nil {
			t.Fatal(err)
		}
		if next++; e.Number() != next {
			t.Fatalf("event %d came after %d", e.Number(), next-1)
		}
		if next == 5 { // while it is not looking
			bustest.PublishRaw(t, nc, run, bustest.Events(run, 11, n-1)...)
			bustest.PublishRaw(t, nc, run, bustest.Event(run, n, messages.EventRunFinished))
		}
	}
	if next != n {
		t.Errorf("%d events, want %d", next, n)
	}
	if h.Watchers() != 0 {
		t.Errorf("%d watchers are left", h.Watchers())
	}
}

func TestHubTellsItsEnd(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	h, stop := openHub(t, b)
	run := bustest.Run()
	bustest.PublishRaw(t, nc, run, bustest.Events(run, 1, 2)...)
	why := errors.New("over")
	for e, err := range h.Watch(bustest.Context(t), run) {
		if err != nil {
			if !errors.Is(err, why) {
				t.Errorf("got %v", err)
			}
			break
		}
		if e.Number() == 2 {
			stop(why)
		}
	}
	for _, err := range h.Watch(bustest.Context(t), run) {
		if err != nil {
			if !errors.Is(err, why) {
				t.Errorf("a late watcher got %v", err)
			}
			break
		}
	}
}

// An end is heard as it is published, whether or not a stream takes it, and once more when it is stored.
func TestEndingIsHeardEarly(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	of := events.New(b).NewEndings()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- of.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	run := bustest.Run()
	ending := of.Of(run, nil)
	defer ending.Close()
	if err := ending.Ready(bustest.Context(t)); err != nil {
		t.Fatal(err)
	}
	hear := func(finished bool) {
		t.Helper()
		if is, err := ending.Next(bustest.Context(t)); is != finished || err != nil {
			t.Fatalf("finished %t, %v, want %t", is, err, finished)
		}
	}
	for _, name := range []string{messages.EventTurnEnd, messages.EventRunFinished} {
		if err := nc.PublishMsg(&nats.Msg{Subject: run.EventSubject(name), Header: nats.Header{jetstream.ExpectedStreamHeader: {"OTHER"}}}); err != nil {
			t.Fatal(err)
		}
		hear(name == messages.EventRunFinished)
	}
	bustest.PublishRaw(t, nc, run, bustest.Event(run, 1, messages.EventRunFinished))
	hear(true)
	hear(true)
}

// A watcher that comes to a hub at rest while NATS is away waits for it, for longer than one request is tried: the hub ends its process.
func TestAHubAtRestOutlivesAnOutage(t *testing.T) {
	t.Parallel()
	servers := bustest.Start(t)
	tried := make(chan struct{}, 1)
	const budget = 200 * time.Millisecond
	b, nc := bustest.Open(t, servers, bus.Config{Answer: 50 * time.Millisecond, Budget: budget, Log: slog.New(signals{tried})})
	js := bustest.NewJetStream(t, nc)
	h := events.New(b).NewHub()
	h.Linger = time.Millisecond
	runHub(t, h)
	ctx, run := bustest.Context(t), bustest.Run()
	bustest.PublishRaw(t, nc, run, bustest.Event(run, 1, messages.EventRunFinished))
	for _, err := range h.Watch(ctx, run) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for following(t, js) > 0 {
		if ctx.Err() != nil {
			t.Fatal("the hub follows for no watcher")
		}
	}
	servers.StopNATS()
	watched := make(chan error, 1)
	go func() {
		var failure error
		for _, err := range h.Watch(ctx, run) {
			failure = err
		}
		watched <- failure
	}()
	for began := time.Now(); time.Since(began) < 3*budget; {
		select {
		case <-tried:
		case err := <-watched:
			t.Fatalf("the watch ended while NATS was away: %v", err)
		}
	}
	if err := servers.StartNATS(); err != nil {
		t.Fatal(err)
	}
	if err := <-watched; err != nil {
		t.Error(err)
	}
}

// A watcher whose stream lost what it has had gets what comes then, although it has lower sequences.
func TestHubOfAStreamThatWasMadeAgain(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	h, _ := openHub(t, b)
	run := bustest.Run()
	bustest.PublishRaw(t, nc, run, bustest.Events(run, 1, 3)...)
	next := uint64(0)
	for e, err := range h.Watch(bustest.Context(t), run) {
		if err != nil {
			t.Fatal(err)
		}
		if next++; e.Number() != next {
			t.Fatalf("event %d came after %d", e.Number(), next-1)
		}
		if next == 3 {
			makeEventsAgain(t, nc)
			bustest.PublishRaw(t, nc, run, bustest.Event(run, 4, messages.EventRunFinished))
		}
	}
	if next != 4 {
		t.Errorf("%d events, want 4", next)
	}
}

// signals is a log that says that something was logged.
type signals struct{ c chan struct{} }

func (signals) Enabled(context.Context, slog.Level) bool { return true }

func (s signals) Handle(context.Context, slog.Record) error {
	select {
	case s.c <- struct{}{}:
	default:
	}
	return nil
}

func (s signals) WithAttrs([]slog.Attr) slog.Handler { return s }

func (s signals) WithGroup(string) slog.Handler { return s }
