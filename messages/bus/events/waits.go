package events

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

// Waits yields what begins and ends the waits of runs: the events run_waiting and run_resumed, those that are kept and then those that come,
// until ctx ends; its error comes last. Of a run whose two events come close to each other the newer may come first. The zero Fed says that
// nothing has come for a second. Nothing is the last that is pending, and there is no zero Fed, before all that is kept of both has come.
func (st *Store) Waits(ctx context.Context) iter.Seq2[Fed, error] {
	return func(yield func(Fed, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var feeding sync.WaitGroup
		defer feeding.Wait()
		defer cancel()
		begin, end := st.feedOf(ctx, &feeding, messages.EventRunWaiting), (<-chan waitFed)(nil)
		for whole := false; ; {
			var f waitFed
			select {
			case f = <-begin:
				if end == nil && f.isLast() { // what ends a wait comes after what began it
					end = st.feedOf(ctx, &feeding, messages.EventRunResumed)
				}
			case f = <-end:
				whole = whole || f.isLast()
			case <-ctx.Done():
				f.err = context.Cause(ctx)
			}
			switch {
			case f.err == nil && !whole && f.Position == 0:
				continue
			case !whole:
				f.Pending = max(1, f.Pending)
			}
			if !yield(f.Fed, f.err) || f.err != nil {
				return
			}
		}
	}
}

// waitFed is an element of one of the feeds of Waits.
type waitFed struct {
	Fed
	err error
}

// isLast reports whether nothing followed it at that time.
func (f *waitFed) isLast() bool { return f.err == nil && (f.Position == 0 || f.Pending == 0) }

// feedOf feeds the events of one name. Two names in one consumer would have NATS look at every subject of the stream again and again, and make
// those who publish wait meanwhile.
func (st *Store) feedOf(ctx context.Context, feeding *sync.WaitGroup, name string) <-chan waitFed {
	out := make(chan waitFed)
	feeding.Go(func() {
		tail := bus.Tail{Room: bus.FollowRoom, Filter: "events.*.*." + name}
		tail.Start.DeliverPolicy = jetstream.DeliverAllPolicy
		st.feed(ctx, st.across(tail, nil), func(f Fed, err error) bool {
			select {
			case out <- waitFed{f, err}:
				return true
			case <-ctx.Done():
				return false
			}
		})
	})
	return out
}

// HasEnded reports whether the event run_finished of a run is stored.
func (st *Store) HasEnded(ctx context.Context, run messages.Ref) (bool, error) {
	_, ok, err := st.of(run).Get(ctx, bus.Lookup{Last: run.EventSubject(messages.EventRunFinished)})
	if err != nil {
		return false, fmt.Errorf("look for the end of %s: %w", run, err)
	}
	return ok, nil
}
