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
	Position uint64 // grows with each message: the sequence in the stream; in several streams, the sum of those up to which they were read
	Stream   int    // the number of its stream, of several
	Seq      uint64 // its sequence there: to continue after
	Subject  string
	Time     time.Time // when it was stored, by the server's clock
	Data     []byte    // as it was published
	Pending  uint64    // how many follow, as of now

	Stray bool // it is in a stream in which its run is not, and counts for nothing

	bus *bus.Bus
}

func (st *Store) fed(m placed, at Position) Fed {
	return Fed{
		Position: at.Sum(), Stream: m.stream, Seq: m.Seq, Subject: m.Subject, Time: m.Time, Data: m.Data, Pending: m.Pending,
		Stray: m.stray, bus: st.bus,
	}
}

// Event reads a message that is one event. It is false, and counted, when it is not what its subject says.
func (f *Fed) Event() (messages.Event, bool) {
	if f.Stray {
		f.bus.Foreign()
		return messages.Event{}, false
	}
	return f.bus.Event(bus.Message{Subject: f.Subject, Data: f.Data})
}

// Events reads the message: the one event that it is, or those of a bundle, with the bytes of each. What is not what the subject says is left out
// and counted.
func (f *Fed) Events() iter.Seq2[messages.Event, []byte] {
	if f.Stray {
		f.bus.Foreign()
		return func(func(messages.Event, []byte) bool) {}
	}
	return f.bus.Each(bus.Message{Subject: f.Subject, Data: f.Data})
}

// Feed yields everything in EVENTS after a position, the empty one for the first that is kept, in order and without a gap, and then
// what comes, until ctx ends; its error comes last, and is ErrAhead when the stream has lost its end. What retention removed before it was read is missing: the first
// position is then more than one after the given one. A caller that stores each position together with what it made of
// the message reads everything exactly once.
// In several streams a run is in one of them, so the order of what belongs to a run is kept; [Position] is where each of them was read to.
func (st *Store) Feed(ctx context.Context, after Position) iter.Seq2[Fed, error] {
	return func(yield func(Fed, error) bool) {
		t, err := st.from(after)
		if err != nil {
			yield(Fed{}, err)
			return
		}
		st.feed(ctx, t, yield)
	}
}

// from reads all of EVENTS after a position.
func (st *Store) from(after Position) (*across, error) {
	if err := after.Fits(st.Streams()); err != nil {
		return nil, err
	}
	tail := bus.Tail{Filter: bus.EveryEvent, Strict: true, Room: bus.FollowRoom}
	tail.Start.DeliverPolicy = jetstream.DeliverAllPolicy
	return st.across(tail, after), nil
}

func (st *Store) feed(ctx context.Context, t *across, yield func(Fed, error) bool) {
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
		case !yield(st.fed(m, t.at), nil):
			return
		}
	}
}
