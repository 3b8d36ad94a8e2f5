package bus_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/events"
)

// fed reads a feed until it says that there is nothing.
func fed(t *testing.T, b *bus.Bus, after uint64) (positions, numbers []uint64) {
	t.Helper()
	for f, err := range events.New(b).Feed(bustest.Context(t), bustest.PositionOf(b, bustest.Run(), after)) {
		if err != nil {
			t.Fatal(err)
		}
		if f.Position == 0 {
			break
		}
		positions = append(positions, f.Position)
		if e, ok := f.Event(); ok {
			numbers = append(numbers, e.Number())
		}
	}
	return positions, numbers
}

func TestFeed(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	if positions, _ := fed(t, b, 0); positions != nil {
		t.Errorf("of an empty stream: %v", positions)
	}
	bustest.PublishRaw(t, nc, bustest.Run(), bustest.Events(bustest.Run(), 1, 3)...)
	if _, err := bustest.NewJetStream(t, nc).Publish(bustest.Context(t), bustest.EventsAt(t, nc, bustest.Run().EventSubject("step_start")), []byte("junk")); err != nil {
		t.Fatal(err)
	}
	bustest.PublishRaw(t, nc, bustest.Run(), bustest.Events(bustest.Run(), 4, 4)...)
	for after, want := range map[uint64][2][]uint64{
		0: {{1, 2, 3, 4, 5}, {1, 2, 3, 4}},
		2: {{3, 4, 5}, {3, 4}},
		5: {nil, nil},
	} {
		positions, numbers := fed(t, b, after)
		if diff := cmp.Diff(want, [2][]uint64{positions, numbers}); diff != "" {
			t.Errorf("after %d: %s", after, diff)
		}
	}
	if b.Skipped() == 0 {
		t.Error("junk was not counted")
	}
}

// A position of another stream must not be waited for in silence until this one has come as far.
func TestFeedAhead(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	bustest.PublishRaw(t, nc, bustest.Run(), bustest.Events(bustest.Run(), 1, 3)...)
	for _, err := range events.New(b).Feed(bustest.Context(t), bustest.PositionOf(b, bustest.Run(), 4)) {
		if !errors.Is(err, bus.ErrAhead) {
			t.Errorf("got %v, want ErrAhead", err)
		}
		break
	}
}

// The idle sign of a feed must not hide that its consumer is gone.
func TestFeedOverARestart(t *testing.T) {
	t.Parallel()
	s := bustest.Start(t)
	b, nc := bustest.Open(t, s, bustest.Quickly())
	bustest.PublishRaw(t, nc, bustest.Run(), bustest.Events(bustest.Run(), 1, 1)...)
	for f, err := range events.New(b).Feed(bustest.Context(t), nil) {
		if err != nil {
			t.Fatal(err)
		}
		switch f.Position {
		case 1:
			s.StopNATS()
			for nc.IsConnected() { // else it may be taken for connected again before it knows
				time.Sleep(time.Millisecond)
			}
			if err := s.StartNATS(); err != nil {
				t.Fatal(err)
			}
			for !nc.IsConnected() {
				time.Sleep(time.Millisecond)
			}
			bustest.PublishRaw(t, nc, bustest.Run(), bustest.Events(bustest.Run(), 2, 2)...)
		case 2:
			return
		}
	}
}
