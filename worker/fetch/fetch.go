// Package fetch is a worker's side of the task queue: which lanes have work, in which order to take from them, which slots are
// free, and which runs wait in quarantine.
//
// One goroutine, started by [Fetch.Own], owns all of that state; whatever another goroutine learns or wants, it sends there, and
// it waits until that is done. No call waits for anything outside meanwhile, except for what News does.
package fetch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/worker/lanes"
)

// Config is fixed for the life of a Fetch. All fields are needed but those with a default.
type Config struct {
	Bus     *bus.Bus
	Slots   int           // runs worked at once
	Look    time.Duration // between two looks at all lanes, about; hints may be lost. Default 3.5 s
	Caps    *bus.Caps     // weights and pauses of tenants; default: there are none
	Log     *slog.Logger
	Held    func() map[messages.Lane]int            // messages in hand by lane; called by any goroutine
	Discard func(ctx context.Context, q bus.Queued) // makes a dead letter of a message that is in no lane
	News    func(trials int)                        // hears how many trials there are when it matters, before the newest run may claim; must be quick
}

// Fetch fetches tasks. Safe for concurrent use. Its methods, but those that say otherwise, do nothing while no goroutine owns it.
type Fetch struct {
	cfg   Config
	ops   chan op       // to the owner
	ended chan struct{} // closed when the owner has ended

	ready   chan struct{} // buffered: the order may be ready
	changed chan struct{} // buffered: something came free
	freed   chan struct{} // buffered: a slot came free, for runs that wait for a worker like this one
	say     chan struct{} // buffered: others are owed something

	// Read by any goroutine, written by the owner alone.
	owned                  atomic.Bool
	busy, suspects, trials atomic.Int64
	full                   atomic.Bool

	// Of the owner alone: no other goroutine reads or writes it.
	slots      slots
	book       book
	quarantine quarantine
}

// op is what a goroutine has the owner do.
type op struct {
	do   func()
	done chan struct{} // closed when it is done, and seen by all
}

// New returns a Fetch.
func New(cfg Config) *Fetch {
	if cfg.Look == 0 {
		cfg.Look = lookEvery
	}
	f := &Fetch{
		cfg: cfg, ops: make(chan op), ended: make(chan struct{}), ready: make(chan struct{}, 1), changed: make(chan struct{}, 1),
		freed: make(chan struct{}, 1), say: make(chan struct{}, 1), slots: slots{total: cfg.Slots}, book: newBook(),
	}
	f.quarantine = quarantine{f: f, limit: cfg.Slots, room: 1}
	return f
}

// Own starts the goroutine that owns the state. It ends, once and for good, when stop is called, which must be after all that
// the worker has in hand has ended.
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

// show is called by the owner when something may have changed.
func (f *Fetch) show() {
	f.busy.Store(int64(f.slots.used))
	f.full.Store(f.slots.full())
	f.suspects.Store(int64(len(f.quarantine.waiting) + f.quarantine.trials))
	f.trials.Store(int64(f.quarantine.trials))
}

// do has the owner do something and waits until it is done. The owner itself must not call it.
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

// Full reports whether there is no slot for another message.
func (f *Fetch) Full() bool { return f.full.Load() }

// Suspects is how many runs wait in quarantine or are on trial.
func (f *Fetch) Suspects() int { return int(f.suspects.Load()) }

// Trials is how many runs have begun their trial and made no progress.
func (f *Fetch) Trials() int { return int(f.trials.Load()) }

// Lanes is how many lanes are believed to have work, and how many could not be made so far.
func (f *Fetch) Lanes() (working int, full uint64) {
	f.do(func() { working, full = len(f.book.order.All()), f.book.full })
	return working, full
}

// Freed gets a signal when slots came free.
func (f *Fetch) Freed() <-chan struct{} { return f.freed }

// Given notes that a message of a lane was given back, to come again after a delay.
func (f *Fetch) Given(l messages.Lane, delay time.Duration) {
	f.do(func() {
		f.book.given(l, delay)
		if delay <= 0 {
			signal(f.say)
			signal(f.ready)
		}
	})
}

// Run takes messages from the lanes for the slots that are free, until ctx ends, and gives each to deliver with its slot, which
// must be freed. The deliver function must not wait. Run returns when no more will be delivered.
func (f *Fetch) Run(ctx context.Context, tasks *bus.Tasks, deliver func(d *bus.Delivery, slot *Slot)) {
	var background sync.WaitGroup
	defer func() { // hints that came until the end were for this worker alone: others are told
		background.Wait()
		if err := f.leave(); err != nil {
			f.cfg.Log.DebugContext(context.WithoutCancel(ctx), "tell others of lanes", "err", err)
		}
	}()
	listening := make(chan struct{})
	background.Go(func() {
		err := f.cfg.Bus.Hints(ctx, f.stored, f.spilled, func() { close(listening) })
		if err != nil {
			f.cfg.Log.WarnContext(ctx, "no hints: tasks are found by looking", "err", err)
			close(listening)
		}
	})
	background.Go(func() { f.keep(ctx, tasks) })
	background.Go(func() {
		<-listening // what was stored before has given its hints to no worker
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
func (f *Fetch) take(ctx context.Context, tasks *bus.Tasks, s lanes.Share, deliver func(*bus.Delivery, *Slot)) {
	got, more, newest := 0, false, uint64(0)
	for d, err := range tasks.Take(ctx, s.Lane, s.N) {
		if err == nil {
			got, more, newest = got+1, d.More, d.Seq
			deliver(d, f.arrived())
			continue
		}
		if more = !errors.Is(err, bus.ErrLanesFull); ctx.Err() == nil { // a look finds it again when there is room
			f.failed(ctx, s.Lane, err)
			pause(ctx, takePause)
		}
	}
	f.do(func() {
		f.took(s, got, newest, !more)
		f.slots.requested -= s.N - got
	})
	signal(f.changed)
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
