package bus_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/events"
)

// gathered reads batches until something was to be read and nothing is left, and returns the lengths of those that are not empty.
func gathered(t *testing.T, st *events.Store, last uint64, g events.Gather, between func(batch []events.Fed)) (lengths []int, positions []uint64) {
	t.Helper()
	for batch, err := range st.Gathered(bustest.Context(t), nil, g) {
		if err != nil {
			t.Fatal(err)
		}
		if len(batch) == 0 {
			continue
		}
		lengths = append(lengths, len(batch))
		for _, f := range batch {
			positions = append(positions, f.Position)
		}
		if between != nil {
			between(batch)
		}
		if positions[len(positions)-1] >= last {
			break
		}
	}
	return lengths, positions
}

func TestGathered(t *testing.T) {
	t.Parallel()
	const all = 50
	b, nc := bustest.OpenNew(t)
	st := events.New(b)
	bustest.PublishRaw(t, nc, bustest.Run(), bustest.Events(bustest.Run(), 1, all)...)
	for name, tc := range map[string]struct {
		g    events.Gather
		most int // messages of a batch
	}{
		"by count": {events.Gather{Within: time.Minute, Messages: 10, Bytes: 1 << 30}, 10},
		"by bytes": {events.Gather{Within: time.Minute, Messages: 1000, Bytes: 1}, 1},
		"by time":  {events.Gather{Within: 0, Messages: 1000, Bytes: 1 << 30}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lengths, positions := gathered(t, st, all, tc.g, nil)
			if diff := cmp.Diff(bustest.Numbers(1, all), positions); diff != "" {
				t.Error(diff)
			}
			for _, n := range lengths {
				if n != tc.most {
					t.Errorf("batches of %v, want %d each", lengths, tc.most)
					break
				}
			}
		})
	}
}

// What comes while the caller works is one batch. Nothing that follows is needed for it to be given: the last one here is alone.
func TestGatheredNeedsNothingThatFollows(t *testing.T) {
	t.Parallel()
	const meanwhile = 20
	b, nc := bustest.OpenNew(t)
	bustest.PublishRaw(t, nc, bustest.Run(), bustest.Events(bustest.Run(), 1, 1)...)
	first := true
	lengths, positions := gathered(t, events.New(b), 1+meanwhile, events.Gather{Within: 2 * time.Second, Messages: 1000, Bytes: 1 << 30}, func([]events.Fed) {
		if first {
			first = false
			bustest.PublishRaw(t, nc, bustest.Run(), bustest.Events(bustest.Run(), 2, 1+meanwhile)...)
		}
	})
	if diff := cmp.Diff(bustest.Numbers(1, 1+meanwhile), positions); diff != "" {
		t.Error(diff)
	}
	if len(lengths) > 4 { // two, unless this machine is very slow
		t.Errorf("%d batches: %v", len(lengths), lengths)
	}
}

// What is waited for is given although more may come, and also when it becomes wanted after it has come.
func TestGatheredIsGivenWhenItIsWanted(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	bustest.PublishRaw(t, nc, bustest.Run(), bustest.Events(bustest.Run(), 1, 3)...)
	var wanted atomic.Uint64
	wanted.Store(3)
	g := events.Gather{Within: time.Hour, Messages: 1000, Bytes: 1 << 30, Wanted: func() events.Position { return bustest.PositionOf(b, bustest.Run(), wanted.Load()) }}
	later := make(chan struct{})
	lengths, positions := gathered(t, events.New(b), 5, g, func(batch []events.Fed) {
		if batch[len(batch)-1].Position == 3 {
			go func() {
				defer close(later)
				bustest.PublishRaw(t, nc, bustest.Run(), bustest.Events(bustest.Run(), 4, 5)...)
				wanted.Store(5)
			}()
		}
	})
	<-later
	if diff := cmp.Diff([]int{3, 2}, lengths); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(bustest.Numbers(1, 5), positions); diff != "" {
		t.Error(diff)
	}
}
