package stage

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

// Finishes watches the ends of runs: one consumer of the run_finished events in each stream, for us and for the floor alike.
type Finishes struct {
	consuming []jetstream.ConsumeContext // one for each stream
	want      int
	all       chan struct{} // closed when so many have come

	mu    sync.Mutex
	times []time.Time
}

// WatchFinishes begins to count, from the first event that is stored.
func WatchFinishes(ctx context.Context, nc *nats.Conn, want int) (*Finishes, error) {
	streams, err := streamsOf(ctx, nc, bus.StreamEvents)
	if err != nil {
		return nil, fmt.Errorf("watch finished runs: %w", err)
	}
	f := &Finishes{want: want, all: make(chan struct{})}
	for _, s := range streams {
		consumer, err := s.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
			FilterSubjects: []string{"events.*.*." + messages.EventRunFinished}, HeadersOnly: true,
		})
		if err == nil {
			var consuming jetstream.ConsumeContext
			if consuming, err = consumer.Consume(f.take); err == nil {
				f.consuming = append(f.consuming, consuming)
			}
		}
		if err != nil {
			f.Stop()
			return nil, fmt.Errorf("watch finished runs: %w", err)
		}
	}
	return f, nil
}

func (f *Finishes) take(jetstream.Msg) {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.times = append(f.times, now); len(f.times) == f.want {
		close(f.all)
	}
}

// Stop ends the watch.
func (f *Finishes) Stop() {
	for _, c := range f.consuming {
		c.Stop()
	}
}

// At is when run number n, counted from 1, had ended.
func (f *Finishes) At(n int) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.times[n-1]
}

// Await waits for all, or says how far the role came.
func (f *Finishes) Await(ctx context.Context, role string) error {
	select {
	case <-f.all:
		return nil
	case <-ctx.Done():
		f.mu.Lock()
		defer f.mu.Unlock()
		return fmt.Errorf("wait for the %s: %d of %d runs have finished: %w", role, len(f.times), f.want, context.Cause(ctx))
	}
}
