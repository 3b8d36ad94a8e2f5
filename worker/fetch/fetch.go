// Package fetch is a worker's side of the task queue: which lanes have work, in which order to take from them, which slots are
// free, and which runs wait in quarantine.
//
// One goroutine, started by [Fetch.Own], owns all of that state. Other goroutines send it operations and wait until they are done.
// No operation blocks on anything outside the process, except in News.
package fetch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-run/longshore/messages/bus/quotas"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/worker/lanes"
	"github.com/longshore-run/longshore/worker/memorylimit"
)

// Config is fixed for the life of a Fetch. All fields without a default are required.
type Config struct {
	Queue   *taskqueue.Queue
	Slots   int           // runs worked at once
	Look    time.Duration // about how often all lanes are listed, since hints may be lost. Default 3.5 s
	Caps    *quotas.Caps  // weights and pauses of tenants; default: there are none
	Log     *slog.Logger
	Held    func() map[queue.Lane]int                     // messages in hand by lane; called by any goroutine
	Discard func(ctx context.Context, q taskqueue.Queued) // dead-letters a message that is in no lane
	Memory  *memorylimit.Budget                           // no message is requested for which it has no room; default: there always is
	News    func(trials int)                              // called when the number of trials changes, before the newest run may claim; must not block
}

// Fetch fetches tasks. Safe for concurrent use. Unless documented otherwise, its methods do nothing while no goroutine owns it.
type Fetch struct {
	cfg   Config
	ops   chan op       // to the owner
	ended chan struct{} // closed when the owner has ended

	ready   chan struct{} // buffered: the order may be ready
	changed chan struct{} // buffered: a slot or a trial came free
	freed   chan struct{} // buffered: a slot came free, for runs that wait for a worker like this one
	say     chan struct{} // buffered: there is something to announce to other workers
	timed   chan struct{} // buffered: there is something to do by time again

	// Read by any goroutine, written only by the owner.
	owned                  atomic.Bool
	busy, suspects, trials atomic.Int64
	full                   atomic.Bool
	ticking                atomic.Bool // keep ticks

	// Only the owner reads and writes these.
	slots      slots
	book       book
	quarantine quarantine
}

// op is an operation that the owner performs for another goroutine.
type op struct {
	do   func()
	done chan struct{} // closed when it is done and its effects are visible
}

// New returns a Fetch.
func New(cfg Config) *Fetch {
	if cfg.Look == 0 {
		cfg.Look = lookEvery
	}
	f := &Fetch{
		cfg: cfg, ops: make(chan op), ended: make(chan struct{}), ready: make(chan struct{}, 1), changed: make(chan struct{}, 1),
		freed: make(chan struct{}, 1), say: make(chan struct{}, 1), timed: make(chan struct{}, 1), slots: slots{total: cfg.Slots, memory: cfg.Memory}, book: newBook(),
	}
	f.quarantine = quarantine{f: f, limit: cfg.Slots, room: 1}
	return f
}

// Own starts the goroutine that owns the state. It ends when stop is called, which must be after everything that the worker has in
// hand has ended. It cannot be started again.
func (f *Fetch) Own() (stop func()) {
	over := make(chan struct{})
	f.owned.Store(true)
	go func() {
		defer close(f.ended)
		for {
			select {
			case o := <-f.ops:
				o.do()
				f.show()
				if !f.ticking.Load() && f.book.isTimed() {
					f.ticking.Store(true)
					signal(f.timed)
				}
				close(o.done)
			case <-over:
				return
			}
		}
	}()
	return func() {
		f.owned.Store(false)
		close(over)
		<-f.ended
	}
}

// show updates the values that other goroutines read. Only the owner calls it.
func (f *Fetch) show() {
	f.busy.Store(int64(f.slots.used))
	f.full.Store(f.slots.full())
	f.suspects.Store(int64(len(f.quarantine.waiting) + f.quarantine.trials))
	f.trials.Store(int64(f.quarantine.trials))
}

// do sends the owner an operation and waits until it is done. The owner itself must not call it.
func (f *Fetch) do(what func()) {
	if !f.owned.Load() {
		return
	}
	o := op{what, make(chan struct{})}
	select {
	case f.ops <- o:
		<-o.done
	case <-f.ended:
	}
}

// Busy returns the number of slots in use. It never blocks and is safe to call at any time, like Full, Suspects and Trials.
func (f *Fetch) Busy() int { return int(f.busy.Load()) }

// Full reports whether all slots are in use.
func (f *Fetch) Full() bool { return f.full.Load() }

// Suspects returns the number of runs that wait in quarantine or are on trial.
func (f *Fetch) Suspects() int { return int(f.suspects.Load()) }

// Trials returns the number of runs on trial that have made no progress yet.
func (f *Fetch) Trials() int { return int(f.trials.Load()) }

// Lanes returns the number of lanes that are believed to have work, and how many lanes could not be created so far.
func (f *Fetch) Lanes() (working int, full uint64) {
	f.do(func() { working, full = len(f.book.order.All()), f.book.full })
	return working, full
}

// Freed returns a channel that receives a signal when slots come free.
func (f *Fetch) Freed() <-chan struct{} { return f.freed }

// Given records that a message of a lane was handed back, to be redelivered after a delay.
func (f *Fetch) Given(l queue.Lane, delay time.Duration) {
	f.do(func() {
		f.book.given(l, delay)
		if delay <= 0 {
			signal(f.say)
			signal(f.ready)
		}
	})
}

// Run takes messages from the lanes for free slots until ctx ends, and passes each to deliver with its slot, which must be freed.
// Deliver must not block. Run returns when no more messages will be delivered.
func (f *Fetch) Run(ctx context.Context, tasks *taskqueue.Tasks, deliver func(d *taskqueue.Delivery, slot *Slot)) {
	var background sync.WaitGroup
	defer func() { // hints go to one worker only: announce those that came until the end to the others
		background.Wait()
		if err := f.leave(); err != nil {
			f.cfg.Log.DebugContext(context.WithoutCancel(ctx), "tell others of lanes", "err", err)
		}
	}()
	listening := make(chan struct{})
	background.Go(func() {
		err := f.cfg.Queue.Hints(ctx, f.stored, f.spilled, func() { close(listening) })
		if err != nil {
			f.cfg.Log.WarnContext(ctx, "no hints: tasks are found by looking", "err", err)
			close(listening)
		}
	})
	background.Go(func() { f.keep(ctx, tasks) })
	background.Go(func() {
		<-listening // messages stored before have sent their hints to no worker
		f.Repair(ctx, tasks.AckWait)
		f.look(ctx)
	})
	for {
		if f.wait(ctx) != nil {
			return
		}
		n, err := f.request(ctx)
		if err != nil {
			return
		}
		for _, s := range f.share(n) {
			background.Go(func() { f.take(ctx, tasks, s, deliver) })
		}
	}
}

// take takes a share from a lane.
func (f *Fetch) take(ctx context.Context, tasks *taskqueue.Tasks, s lanes.Share, deliver func(*taskqueue.Delivery, *Slot)) {
	got, more, newest := 0, false, uint64(0)
	for d, err := range tasks.Take(ctx, s.Lane, s.N) {
		if err == nil {
			got, more, newest = got+1, d.More, d.Seq
			deliver(d, f.arrived())
			continue
		}
		if more = !errors.Is(err, taskqueue.ErrLanesFull); ctx.Err() == nil { // listing the lanes finds it again when there is room
			f.failed(ctx, s.Lane, err)
			pause(ctx, takePause)
		}
	}
	f.do(func() {
		f.took(s, got, newest, !more)
		f.slots.requested -= s.N - got
	})
	signal(f.changed)
	if got > 0 {
		f.stand(ctx, tasks, s.Lane, deliver)
	}
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
