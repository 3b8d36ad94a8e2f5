package bus_test

import (
	"context"
	"errors"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/events"
)

// openHub runs a hub until the test ends, or stop is called with the reason.
func openHub(t *testing.T, b *bus.Bus) (h *events.Hub, stop func(error)) {
	t.Helper()
	h = events.New(b).NewHub()
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx) }()
	t.Cleanup(func() {
		cancel(nil)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return h, cancel
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
