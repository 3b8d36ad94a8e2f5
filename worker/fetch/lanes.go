package fetch

import (
	"context"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/worker/lanes"
)

const (
	// A worker without a free slot announces a lane with work at once, and further ones at most this often.
	spillEvery = 250 * time.Millisecond
	// How often a worker lists all lanes: between half of it and one and a half. Each page of 256 lanes adds to the interval, so that
	// a fleet with many lanes does not spend its time listing them.
	lookEvery = 3500 * time.Millisecond
	lookPage  = time.Second
	pageLanes = 256
	// How many lanes with messages in hand elsewhere are tried after each listing: messages of a dead worker are redelivered without
	// a hint.
	maxTries = 256
	// Some of them are tried more often: so many, once in so many spills.
	maxForeign   = 16
	foreignEvery = 4
	// The server sends a hint slightly before it delivers the message. A message that was not found is looked for again, with a wait
	// that grows by this factor.
	firstRetry  = time.Millisecond
	retryFactor = 4
	maxRetries  = 5 // a third of a second in all
	// How many of these retries are skipped for a lane that another worker announced, which takes time.
	oldRetries = 3
	// How many unroutable messages a worker remembers; the next repair finds the others.
	maxUnroutable = 1000
	// A take that failed is repeated after this time.
	takePause = 250 * time.Millisecond
)

// book is what this worker knows of the lanes: which have work (from hints and from listing them), in which order to take from them,
// and what to announce to other workers when there is no slot. Only the owner uses it.
type book struct {
	order      *lanes.Order
	newest     map[queue.Lane]uint64   // known lanes with the sequence that was taken last
	hinted     map[queue.Lane]hinted   // hinted at and not found yet
	untold     map[queue.Lane]struct{} // hints came while there was a slot: no other worker knows
	owed       map[queue.Lane]struct{} // to be announced to other workers
	foreign    []queue.Lane            // some of the lanes with messages in hand elsewhere; written by list
	later      []ripening              // messages that this worker handed back with a delay; written by given and ripen
	unroutable []place                 // messages that are in no lane; written by stored and deadLetter
	full       uint64                  // lanes that could not be created; written by failed
	standing   standing                // written by mayStand and stood
}

// hinted is the newest message seen in a lane, and how often it was looked for in vain.
type hinted struct {
	seq     uint64
	retries int
}

// place is that of a message in the queue.
type place struct {
	partition int
	seq       uint64
}

// ripening is a lane in which a message is redelivered at a given time.
type ripening struct {
	lane queue.Lane
	at   time.Time
}

func newBook() book {
	return book{
		order: lanes.New(), newest: map[queue.Lane]uint64{}, hinted: map[queue.Lane]hinted{},
		untold: map[queue.Lane]struct{}{}, owed: map[queue.Lane]struct{}{},
	}
}

// stored handles the hint of a stored message, which only this worker receives.
func (f *Fetch) stored(l queue.Lane, seq uint64) {
	f.do(func() {
		b := &f.book
		switch {
		case l.Priority == "":
			if len(b.unroutable) < maxUnroutable {
				b.unroutable = append(b.unroutable, place{l.Partition, seq})
				signal(f.say)
			}
			return
		case seq != 0 && seq <= b.newest[l]:
			return // some worker has it
		}
		b.hinted[l] = hinted{seq: seq}
		if seq != 0 && b.standing.end != nil && b.standing.lane == l { // it will have it, or see to the hint
			b.untold[l] = struct{}{}
			return
		}
		b.order.Mark(l)
		if f.slots.full() {
			b.owed[l] = struct{}{}
			signal(f.say)
		} else {
			b.untold[l] = struct{}{}
		}
		signal(f.ready)
	})
}

// spilled handles the announcement of a lane with work, from a worker without a slot to all others.
func (f *Fetch) spilled(l queue.Lane) {
	f.do(func() {
		if _, ok := f.book.hinted[l]; !ok {
			f.book.hinted[l] = hinted{math.MaxUint64, oldRetries}
		}
		f.book.order.Mark(l)
		signal(f.ready)
	})
}

// again schedules another look into a lane.
func (f *Fetch) again(l queue.Lane) {
	f.do(func() { f.book.order.Mark(l) })
	signal(f.ready)
}

// given records that a message of a lane was handed back, to be redelivered after a delay.
func (b *book) given(l queue.Lane, delay time.Duration) {
	if delay > 0 {
		b.later = append(b.later, ripening{l, time.Now().Add(delay)})
		return
	}
	b.order.Mark(l)
	b.owed[l] = struct{}{}
}

// wait waits until there is a lane to take from.
func (f *Fetch) wait(ctx context.Context) error {
	for {
		ready := false
		f.do(func() { ready = f.book.order.Ready() })
		if ready {
			return nil
		}
		select {
		case <-f.ready:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// share divides the requested messages among the lanes. It returns none if another take has found the last lane empty.
func (f *Fetch) share(n int) (shares []lanes.Share) {
	f.do(func() {
		if shares = f.book.order.Share(n); len(shares) == 0 {
			f.slots.requested -= n
			signal(f.changed)
		}
	})
	return shares
}

// took records the result of a take: the sequence of the last message, and whether there are more. Only the owner calls it.
func (f *Fetch) took(s lanes.Share, got int, newest uint64, dry bool) {
	b := &f.book
	b.order.Took(s, got, dry)
	if got > 0 {
		b.newest[s.Lane] = newest
	}
	_, untold := b.untold[s.Lane]
	switch h, waits := b.hinted[s.Lane]; {
	case waits && (h.seq <= newest || h.retries == maxRetries): // it is found, or another worker had it
		delete(b.hinted, s.Lane)
	case waits && dry && got < s.N:
		time.AfterFunc(firstRetry*time.Duration(math.Pow(retryFactor, float64(h.retries))), func() { f.again(s.Lane) })
		b.hinted[s.Lane] = hinted{h.seq, h.retries + 1}
	}
	switch {
	case dry && !b.order.Marked(s.Lane):
		delete(b.untold, s.Lane)
	case f.slots.full() && untold: // the rest may be for others
		delete(b.untold, s.Lane)
		b.owed[s.Lane] = struct{}{}
		signal(f.say)
	}
}

// isTimed reports whether there is anything to do at the next tick.
func (b *book) isTimed() bool { return len(b.later)+len(b.foreign)+len(b.owed)+len(b.unroutable) > 0 }

// keep announces lanes to other workers and tracks redeliveries until ctx ends. It ticks as long as there is anything to do by time.
func (f *Fetch) keep(ctx context.Context, tasks *taskqueue.Tasks) {
	ticker := time.NewTicker(spillEvery)
	defer ticker.Stop()
	f.ticking.Store(true)
	var told time.Time
	for ticks := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-f.timed:
			ticker.Reset(spillEvery)
			continue
		case now := <-ticker.C:
			ticks++
			f.do(func() {
				f.ripen(now, ticks%foreignEvery == 0)
				if f.ticking.Store(f.book.isTimed()); !f.ticking.Load() {
					ticker.Stop()
				}
			})
		case <-f.say:
			if time.Since(told) < spillEvery {
				continue // the ticker does it
			}
		}
		if f.spill(ctx, tasks) {
			told = time.Now()
		}
		f.deadLetter(ctx)
	}
}

// ripen marks lanes whose messages are due for redelivery. Only the owner calls it.
func (f *Fetch) ripen(now time.Time, foreign bool) {
	b := &f.book
	if foreign {
		for _, l := range b.foreign {
			b.order.Mark(l)
			signal(f.ready)
		}
	}
	b.later = slices.DeleteFunc(b.later, func(r ripening) bool {
		if now.Before(r.at) {
			return false
		}
		b.order.Mark(r.lane)
		b.owed[r.lane] = struct{}{}
		signal(f.ready)
		return true
	})
}

// deadLetter dead-letters the messages that are in no lane.
func (f *Fetch) deadLetter(ctx context.Context) {
	var unroutable []place
	f.do(func() { unroutable, f.book.unroutable = f.book.unroutable, nil })
	for _, at := range unroutable {
		task, ok, err := f.cfg.Queue.Unroutable(ctx, at.partition, at.seq)
		switch {
		case ok:
			f.cfg.Discard(ctx, task)
		case err != nil && ctx.Err() == nil:
			f.cfg.Log.WarnContext(ctx, "look for a task without a lane", "err", err)
		}
	}
}

// spill announces owed messages, if any, to all workers. A lane that may not exist is created first, so that workers that miss the
// announcement find it in the list.
func (f *Fetch) spill(ctx context.Context, tasks *taskqueue.Tasks) bool {
	var owed, unknown []queue.Lane
	f.do(func() {
		b := &f.book
		owed = slices.Collect(maps.Keys(b.owed))
		clear(b.owed)
		for _, l := range owed {
			if _, ok := b.newest[l]; !ok {
				unknown = append(unknown, l)
				b.newest[l] = 0
			}
		}
	})
	if len(owed) == 0 {
		return false
	}
	if err := f.cfg.Queue.Spill(owed); err != nil {
		f.cfg.Log.DebugContext(ctx, "tell others of lanes", "err", err)
	}
	for _, l := range unknown {
		if err := tasks.Make(ctx, l); err != nil && ctx.Err() == nil {
			f.failed(ctx, l, err)
		}
	}
	return true
}

// failed reports a lane that could not be made or taken from. Its tasks stay in the queue.
func (f *Fetch) failed(ctx context.Context, l queue.Lane, err error) {
	if errors.Is(err, taskqueue.ErrLanesFull) {
		f.do(func() { f.book.full++ })
		f.cfg.Log.ErrorContext(ctx, "tasks of a tenant wait for room: raise max_consumers of the stream TASKS", "tenant", l.Tenant, "err", err)
		return
	}
	f.cfg.Log.WarnContext(ctx, "take tasks", "lane", l.String(), "err", err)
}

// Repair creates the lanes of messages that have none, because no worker received their hints or the lane was removed. New lanes
// have the ack wait of the queue.
func (f *Fetch) Repair(ctx context.Context, ackWait time.Duration) {
	made, unroutable, err := f.cfg.Queue.RepairLanes(ctx, ackWait)
	for _, task := range unroutable {
		f.cfg.Discard(ctx, task)
	}
	switch {
	case errors.Is(err, taskqueue.ErrLanesFull):
		f.failed(ctx, queue.Lane{}, err)
	case err != nil && ctx.Err() == nil:
		f.cfg.Log.WarnContext(ctx, "look for tasks without a lane", "err", err)
	}
	for _, l := range made {
		f.Given(l, 0)
	}
}

// look lists the lanes periodically, since hints may be lost, and applies quotas, until ctx ends.
func (f *Fetch) look(ctx context.Context) {
	var granted uint64
	for {
		granted = f.grants(granted)
		known := f.list(ctx)
		wait := f.cfg.Look/2 + rand.N(f.cfg.Look) + time.Duration(known/pageLanes)*lookPage
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// list lists all lanes and returns their number.
func (f *Fetch) list(ctx context.Context) int {
	all, err := f.cfg.Queue.Lanes(ctx)
	if err != nil {
		if ctx.Err() == nil {
			f.cfg.Log.WarnContext(ctx, "look at the lanes", "err", err)
		}
		return 0
	}
	mine := f.cfg.Held()
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	f.do(func() {
		b := &f.book
		newest := make(map[queue.Lane]uint64, len(all))
		tries := 0
		var foreign []queue.Lane
		for _, s := range all {
			newest[s.Lane] = b.newest[s.Lane]
			switch {
			case s.Queued > 0:
				b.order.Mark(s.Lane)
			case s.InFlight > mine[s.Lane] && tries < maxTries:
				tries++
				b.order.Mark(s.Lane)
				if len(foreign) < maxForeign {
					foreign = append(foreign, s.Lane)
				}
			}
		}
		b.newest, b.foreign = newest, foreign
	})
	signal(f.ready)
	return len(all)
}

// grants applies weights and pauses if they have changed since a revision, and returns the new revision.
func (f *Fetch) grants(since uint64) uint64 {
	if f.cfg.Caps == nil {
		return since
	}
	quotas, revision := f.cfg.Caps.Granted()
	if revision == since {
		return revision
	}
	weights, paused := map[string]int{}, map[string]bool{}
	for of, quota := range quotas {
		if of.Kind != queue.QuotaTenant {
			continue
		}
		if quota.Weight > 0 {
			weights[of.Name] = quota.Weight
		}
		if quota.Paused != nil {
			paused[of.Name] = true
		}
	}
	f.do(func() {
		f.book.order.Grant(weights, paused)
		f.endStanding() // its lane may be one that is left alone now
	})
	signal(f.ready)
	return revision
}

// leave announces the lanes that this worker knows and will no longer work.
func (f *Fetch) leave() error {
	var all []queue.Lane
	f.do(func() { all = f.book.order.All() })
	return f.cfg.Queue.Spill(all)
}
