package events

import (
	"context"
	"fmt"
	"iter"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

// Waits yields what begins and ends the waits of runs: the events run_waiting and run_resumed, those that are kept and
// then those that come, in order, until ctx ends; its error comes last. The zero Fed says that
// nothing has come for a second.
func (st *Store) Waits(ctx context.Context) iter.Seq2[Fed, error] {
	return func(yield func(Fed, error) bool) {
		tail := bus.Tail{
			Room:   bus.FollowRoom,
			Filter: "events.*.*." + messages.EventRunWaiting, Also: []string{"events.*.*." + messages.EventRunResumed},
		}
		tail.Start.DeliverPolicy = jetstream.DeliverAllPolicy
		st.feed(ctx, st.across(tail, nil), yield)
	}
}

// HasEnded reports whether the event run_finished of a run is stored.
func (st *Store) HasEnded(ctx context.Context, run messages.Ref) (bool, error) {
	_, ok, err := st.of(run).Get(ctx, bus.Lookup{Last: run.EventSubject(messages.EventRunFinished)})
	if err != nil {
		return false, fmt.Errorf("look for the end of %s: %w", run, err)
	}
	return ok, nil
}
