package bus

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
)

// boundLook is how long a read waits for the next of the events that are stored before it looks whether it has all.
const boundLook = 200 * time.Millisecond

// eventsBound is Events by a consumer: its filter stands in the subject of the request that makes it, where permissions
// are checked.
func (b *Bus) eventsBound(ctx context.Context, filter string, since time.Time) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		t := &tail{bus: b, stream: StreamEvents, filter: filter, room: followRoom}
		t.start.DeliverPolicy = jetstream.DeliverAllPolicy
		if !since.IsZero() {
			t.start.DeliverPolicy, t.start.OptStartTime = jetstream.DeliverByStartTimePolicy, &since
		}
		defer t.close()
		for {
			m, err := t.next(ctx, time.Now().Add(boundLook))
			switch {
			case errors.Is(err, errNothing):
				if t.in != nil && t.consumed >= t.stored {
					return
				}
				continue
			case err != nil:
				yield(messages.Event{}, fmt.Errorf("read events: %w", err))
				return
			}
			if e, ok := b.event(m.stored); ok && !yield(e, nil) || m.pending == 0 {
				return
			}
		}
	}
}
