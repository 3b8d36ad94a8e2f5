package fetch

import (
	"context"
	"time"

	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/queue"
)

const (
	// How long a request stands before it is made anew: one that the server has lost delays a task by so much.
	standWait = 2 * time.Second
	// How long a lane without messages is stood at.
	standIdle = 10 * time.Second
)

// standing is the request that waits for the next message of a lane which has given its last one a moment ago, while this worker has little
// to do: a task that comes then costs neither a hint nor a request of its own. Only the owner uses it.
type standing struct {
	lane queue.Lane
	end  context.CancelFunc // nil: there is none
}

// mayStand takes a slot for a standing request at a lane that had a message at that time, if it may stand. Only the owner calls it.
func (f *Fetch) mayStand(l queue.Lane, since time.Time, end context.CancelFunc) bool {
	b, s := &f.book, &f.slots
	if b.standing.end != nil || b.order.Ready() || b.order.Paused(l) || s.free()-s.requested <= s.total/2 || time.Since(since) > standIdle {
		return false
	}
	b.standing = standing{l, end}
	s.requested++
	return true
}

// stood notes what a standing request brought; nil: nothing. Hints that came meanwhile and were not for that are followed now. Only the owner
// calls it.
func (f *Fetch) stood(l queue.Lane, d *taskqueue.Delivery) {
	b := &f.book
	b.standing = standing{}
	if d == nil {
		f.slots.requested--
	} else {
		b.newest[l] = max(b.newest[l], d.Seq)
	}
	h, waits := b.hinted[l]
	switch {
	case waits && h.seq > b.newest[l], d != nil && d.More:
		b.order.Mark(l)
		signal(f.ready)
	case waits:
		delete(b.hinted, l)
		delete(b.untold, l)
	}
}

// endStanding ends the request that stands, if one does. Only the owner calls it.
func (f *Fetch) endStanding() {
	if f.book.standing.end != nil {
		f.book.standing.end()
	}
}

// stand waits for the messages of a lane for as long as it may.
func (f *Fetch) stand(ctx context.Context, tasks *taskqueue.Tasks, l queue.Lane, deliver func(*taskqueue.Delivery, *Slot)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	since, may := time.Now(), false
	f.do(func() { may = f.mayStand(l, since, cancel) })
	for may {
		d, err := tasks.Await(ctx, l, standWait)
		if d != nil {
			since = time.Now()
			deliver(d, f.arrived())
		}
		f.do(func() {
			f.stood(l, d)
			may = err == nil && ctx.Err() == nil && f.mayStand(l, since, cancel)
		})
		signal(f.changed)
	}
}
