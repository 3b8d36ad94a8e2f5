package bus

import (
	"context"
	"fmt"
	"iter"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
)

// Waits yields what begins and ends the waits of runs: the events run_waiting and run_resumed, those that are kept and
// then those that come, in order, until ctx ends; its error comes last. The zero Fed says that
// nothing has come for a second.
func (b *Bus) Waits(ctx context.Context) iter.Seq2[Fed, error] {
	return func(yield func(Fed, error) bool) {
		t := &Tail{
			Bus: b, Stream: StreamEvents, Room: followRoom,
			Filter: "events.*.*." + messages.EventRunWaiting, also: []string{"events.*.*." + messages.EventRunResumed},
		}
		t.Start.DeliverPolicy = jetstream.DeliverAllPolicy
		b.feed(ctx, t, yield)
	}
}

// HasEnded reports whether the event run_finished of a run is stored.
func (b *Bus) HasEnded(ctx context.Context, run messages.Ref) (bool, error) {
	_, ok, err := b.Get(ctx, StreamEvents, Lookup{Last: run.EventSubject(messages.EventRunFinished)})
	if err != nil {
		return false, fmt.Errorf("look for the end of %s: %w", run, err)
	}
	return ok, nil
}
