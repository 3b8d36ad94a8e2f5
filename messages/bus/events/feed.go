package events

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

// feedIdle is how long a feed waits before it says that there is nothing.
const feedIdle = time.Second

// Fed is a message of EVENTS with its place, for who keeps a position of its own. The zero Fed says that nothing has
// come for a second.
type Fed struct {
	Position uint64 // to continue after: the sequence in the stream
	Subject  string
	Time     time.Time // when it was stored, by the server's clock
	Data     []byte    // as it was published
	Pending  uint64    // how many follow, as of now

	bus *bus.Bus
}

// Event reads a message that is one event. It is false, and counted, when it is not what its subject says.
func (f *Fed) Event() (messages.Event, bool) {
	return f.bus.Event(bus.Message{Subject: f.Subject, Data: f.Data})
}

// Events reads the message: the one event that it is, or those of a bundle, with the bytes of each. What is not what the subject says is left out
// and counted.
func (f *Fed) Events() iter.Seq2[messages.Event, []byte] {
	return f.bus.Each(bus.Message{Subject: f.Subject, Data: f.Data})
}

// Feed yields everything in EVENTS after a position, 0 for the first that is kept, in order and without a gap, and then
// what comes, until ctx ends; its error comes last, and is ErrAhead when the stream has lost its end. What retention removed before it was read is missing: the first
// position is then more than one after the given one. A caller that stores each position together with what it made of
// the message reads everything exactly once.
func (st *Store) Feed(ctx context.Context, after uint64) iter.Seq2[Fed, error] {
	return func(yield func(Fed, error) bool) {
		t := &bus.Tail{Bus: st.bus, Stream: bus.StreamEvents, Filter: bus.EveryEvent, Strict: true, Room: bus.FollowRoom, Last: after}
		t.Start.DeliverPolicy = jetstream.DeliverAllPolicy
		st.feed(ctx, t, yield)
	}
}

func (st *Store) feed(ctx context.Context, t *bus.Tail, yield func(Fed, error) bool) {
	defer t.Close()
	for {
		m, err := t.Next(ctx, time.Now().Add(feedIdle))
		switch {
		case errors.Is(err, bus.ErrNothing):
			if !yield(Fed{}, nil) {
				return
			}
		case err != nil:
			yield(Fed{}, err)
			return
		case !yield(Fed{m.Seq, m.Subject, m.Time, m.Data, m.Pending, st.bus}, nil):
			return
		}
	}
}
