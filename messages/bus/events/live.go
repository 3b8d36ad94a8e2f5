package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
)

// What a watcher of live text may leave unread, before messages to it are dropped: about as much as a reply has.
const (
	liveRoom      = 1024
	liveRoomBytes = 4 << 20
)

// PublishLive publishes a piece of a reply that is being written, at most once: it is not stored, and may be lost.
func (st *Store) PublishLive(run messages.Ref, l *messages.Live) error {
	if err := run.Check(); err != nil {
		return err
	}
	data, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("encode live message: %w", err)
	}
	if err := st.bus.Conn().Publish(run.LiveSubject(), data); err != nil {
		return fmt.Errorf("publish live message: %w", err)
	}
	return nil
}

// Live yields the replies of a run while they are written, from now on, until ctx ends; its error comes last. A
// watcher that is slower than the reply misses messages, as their numbers show, and delays no other. What is no live
// message of the run is passed over and counted.
func (st *Store) Live(ctx context.Context, run messages.Ref) iter.Seq2[messages.Live, error] {
	return func(yield func(messages.Live, error) bool) {
		if err := run.Check(); err != nil {
			yield(messages.Live{}, err)
			return
		}
		sub, err := st.bus.Conn().SubscribeSync(run.LiveSubject())
		if err != nil {
			yield(messages.Live{}, fmt.Errorf("subscribe to live text: %w", err))
			return
		}
		defer func() { _ = sub.Unsubscribe() }() // fails only when the connection is gone
		if err := sub.SetPendingLimits(liveRoom, liveRoomBytes); err != nil {
			yield(messages.Live{}, fmt.Errorf("subscribe to live text: %w", err))
			return
		}
		for {
			m, err := sub.NextMsgWithContext(ctx)
			switch {
			case ctx.Err() != nil:
				yield(messages.Live{}, context.Cause(ctx))
				return
			case errors.Is(err, nats.ErrSlowConsumer):
				continue
			case err != nil:
				yield(messages.Live{}, fmt.Errorf("wait for live text: %w", err))
				return
			}
			l, err := messages.DecodeLive(run, m.Data)
			if err != nil {
				st.bus.Foreign()
				continue
			}
			if !yield(l, nil) {
				return
			}
		}
	}
}
