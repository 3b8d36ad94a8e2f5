package events

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-run/longshore/messages/bus"
)

const (
	// How long messages of other streams wait for a stream that has older ones and does not deliver them. After that it is not waited for
	// until it delivers again.
	acrossWait = 500 * time.Millisecond
	// Messages of one stream that wait for their turn, beside those in its tail.
	acrossRoom = 256
	// The least room of a tail that shares its room with others.
	acrossLeast = 1024
)

// placed is a message of EVENTS.
type placed struct {
	bus.TailMessage

	stream int  // its number
	stray  bool // it is of a run that belongs in another stream, and counts for nothing
}

// across reads the streams that EVENTS is in as if they were one. What is stored already comes by the times at which it was stored, as
// nearly as their servers' clocks tell; what comes later, as it comes. The messages of a run are in one stream, so their order is
// kept. It belongs to one goroutine. With one stream it is a Tail.
type across struct {
	streams bus.Partitions
	tails   []*bus.Tail
	at      Position // of what was given

	// Of several streams.
	stop  context.CancelFunc // of the goroutines that read them; nil: they have not begun
	pumps sync.WaitGroup
	wake  chan struct{} // has an element after something has changed
	feeds []*feed
	until time.Time // when a stream that is waited for is late; zero: none is waited for
}

// feed is what comes from one stream.
type feed struct {
	in   chan fromTail
	owes atomic.Bool // there is more that was stored already

	head    *fromTail // what comes next; nil: nothing has come
	pending uint64    // that follow the last message that was given
	late    bool
}

type fromTail struct {
	bus.TailMessage

	err error
}

// across returns a reader of all streams after a position. The tail says how each is read.
func (st *Store) across(tail bus.Tail, after Position) *across {
	a := &across{streams: st.bus.Partitions(bus.StreamEvents), wake: make(chan struct{}, 1)}
	names := a.streams.Names()
	a.at = make(Position, len(names))
	tail.Bus = st.bus
	if len(names) > 1 {
		tail.Room = max(tail.Room/len(names), min(tail.Room, acrossLeast))
	}
	for i, name := range names {
		t := tail
		t.Stream, t.Last = name, after.At(i)
		a.at[i] = t.Last
		a.tails = append(a.tails, &t)
	}
	return a
}

// Begin has the server deliver from now on, unless it does.
func (a *across) Begin(ctx context.Context) error {
	if a.stop != nil { // they are read
		return nil
	}
	for _, t := range a.tails {
		if err := t.Begin(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the reader. It can be begun again where it was.
func (a *across) Close() {
	if a.stop != nil {
		a.stop()
		a.pumps.Wait()
		a.stop, a.feeds, a.until = nil, nil, time.Time{}
	}
	for i, t := range a.tails {
		t.Close()
		if len(a.tails) > 1 {
			t.Rewind(a.at[i]) // what was read and not given is read again
		}
	}
}

// Next is that of a [bus.Tail].
func (a *across) Next(ctx context.Context, until time.Time) (placed, error) {
	if len(a.tails) == 1 {
		m, err := a.tails[0].Next(ctx, until)
		a.at[0] = a.tails[0].Last
		return placed{m, 0, false}, err
	}
	if a.stop == nil {
		a.begin(ctx)
	}
	for {
		if ctx.Err() != nil {
			return placed{}, context.Cause(ctx)
		}
		next, awaited, err := a.first()
		if err != nil {
			return placed{}, err
		}
		now := time.Now()
		switch {
		case next >= 0 && !awaited, next >= 0 && !a.until.IsZero() && !now.Before(a.until):
			return a.give(next), nil
		case next >= 0 && a.until.IsZero():
			a.until = now.Add(acrossWait)
		case !until.IsZero() && !now.Before(until):
			return placed{}, bus.ErrNothing
		}
		if err := a.wait(ctx, next >= 0, until); err != nil {
			return placed{}, err
		}
	}
}

// begin starts to read all streams. What is known to be stored when they are begun is given by its time.
func (a *across) begin(ctx context.Context) {
	ctx, a.stop = context.WithCancel(ctx)
	a.feeds = make([]*feed, len(a.tails))
	for i, t := range a.tails {
		f := &feed{in: make(chan fromTail, acrossRoom), pending: 1} // as long as it is not known
		f.owes.Store(true)
		a.feeds[i] = f
		a.pumps.Go(func() { a.pump(ctx, t, f) })
	}
}

// pump hands on what comes from one stream, until an error, which is the last that comes.
func (a *across) pump(ctx context.Context, t *bus.Tail, f *feed) {
	err := t.Begin(ctx)
	if err == nil && !t.Owes() {
		f.owes.Store(false)
		a.changed()
	}
	for {
		var m bus.TailMessage
		if err == nil {
			m, err = t.Next(ctx, time.Time{})
		}
		select {
		case f.in <- fromTail{m, err}:
		case <-ctx.Done():
			return
		}
		f.owes.Store(err == nil && m.Pending > 0)
		a.changed()
		if err != nil {
			return
		}
	}
}

func (a *across) changed() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// first finds the stream whose next message was stored first; -1: there is none. Awaited says that another stream is to be waited for,
// which has messages that may be older.
func (a *across) first() (next int, awaited bool, err error) {
	next = -1
	for i, f := range a.feeds {
		owes := f.owes.Load() // before it is looked for: the message that it is about is there then
		if f.head == nil {
			select {
			case m := <-f.in:
				if m.err != nil {
					return -1, false, m.err
				}
				f.head, f.late = &m, false
			default:
				if !owes { // what it had, when it was begun or last delivered, was given
					f.pending = 0
				}
				awaited = awaited || owes && !f.late
				continue
			}
		}
		if next < 0 || f.head.Time.Before(a.feeds[next].head.Time) {
			next = i
		}
	}
	return next, awaited, nil
}

// give returns the message that the first stream has next.
func (a *across) give(next int) placed {
	if !a.until.IsZero() && !time.Now().Before(a.until) {
		for _, f := range a.feeds {
			f.late = f.late || f.head == nil
		}
	}
	a.until = time.Time{}
	f := a.feeds[next]
	m := placed{f.head.TailMessage, next, !a.streams.OwnsSubject(a.tails[next].Stream, f.head.Subject)}
	f.head, f.pending, a.at[next] = nil, m.Pending, m.Seq
	m.Pending = 0
	for _, f := range a.feeds {
		if f.head != nil {
			m.Pending += f.head.Pending + 1
		} else {
			m.Pending += f.pending
		}
	}
	return m
}

// wait waits until something has come, or it is time to look: at a message that waits for another stream, or because of until.
func (a *across) wait(ctx context.Context, held bool, until time.Time) error {
	var timer <-chan time.Time
	if held {
		until = a.until
	}
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-a.wake:
	case <-timer:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
