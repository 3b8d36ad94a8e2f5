package worker

import (
	"context"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/worker/lanes"
)

const (
	// A worker without a free slot says at once which lane has work, and others at most so often.
	spillEvery = 250 * time.Millisecond
	// How often a worker looks at all lanes, whatever it was told: half of it at least, one and a half at most. Each
	// page of the list, 256 lanes, adds its price in time, so that a fleet with many lanes does not only list them.
	lookEvery = 3500 * time.Millisecond
	lookPage  = time.Second
	pageLanes = 256
	// How many lanes are tried after each look because others have messages of them in hand: those of a worker that has
	// died come again without a hint.
	maxTries = 256
	// Some of them are tried more often: so many, once in so many spills.
	maxForeign   = 16
	foreignEvery = 4
	// The queue sends a hint a moment before it gives the message to who asks: one that was hinted at and not found is
	// looked for again, each time after a wait that is so many times longer.
	firstRetry  = time.Millisecond
	retryFactor = 4
	maxRetries  = 5 // a third of a second in all
	// How many of these retries are left out for what another worker saw, some time ago.
	oldRetries = 3
	// How many messages that name no lane a worker notes; a look for them finds the others.
	maxUnroutable = 1000
	// A take that failed is repeated after this time.
	takePause = 250 * time.Millisecond
)

// queue is the lanes as this worker knows them: which have work, from hints and from a look now and then; in which
// order to take from them; and what to tell others when there is no slot.
type queue struct {
	bus   *bus.Bus
	slots *slots
	ready chan struct{} // buffered: the order may be ready
	say   chan struct{} // buffered: something is owed

	mu         sync.Mutex
	order      *lanes.Order
	newest     map[messages.Lane]uint64   // the lanes that exist, as far as is known, with the sequence that was taken last
	hinted     map[messages.Lane]hinted   // what was not found yet
	untold     map[messages.Lane]struct{} // hints about them came while there was a slot: nobody else knows
	owed       map[messages.Lane]struct{} // others are to be told about them
	foreign    []messages.Lane            // others have messages of them in hand, some of them
	later      []ripening                 // messages that this worker gave back for a while
	unroutable []uint64                   // sequences of messages that are in no lane
	full       uint64                     // lanes that could not be made
}

// hinted is the newest message that somebody saw in a lane, and how often it was looked for in vain.
type hinted struct {
	seq     uint64
	retries int
}

// ripening is a lane in which a message comes again at a time.
type ripening struct {
	lane messages.Lane
	at   time.Time
}

func newQueue(b *bus.Bus, s *slots) *queue {
	return &queue{
		bus: b, slots: s, ready: make(chan struct{}, 1), say: make(chan struct{}, 1), order: lanes.New(),
		newest: map[messages.Lane]uint64{}, hinted: map[messages.Lane]hinted{}, untold: map[messages.Lane]struct{}{}, owed: map[messages.Lane]struct{}{},
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// stored hears of a message that the queue has stored, and nobody else does.
func (q *queue) stored(l messages.Lane, seq uint64) {
	full := q.slots.full()
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case l == messages.Lane{}:
		if len(q.unroutable) < maxUnroutable {
			q.unroutable = append(q.unroutable, seq)
			signal(q.say)
		}
		return
	case seq != 0 && seq <= q.newest[l]:
		return // somebody has it
	}
	q.hinted[l] = hinted{seq: seq}
	q.order.Mark(l)
	if full {
		q.owed[l] = struct{}{}
		signal(q.say)
	} else {
		q.untold[l] = struct{}{}
	}
	signal(q.ready)
}

// spilled hears of a lane with work that another worker has no slot for; all others hear of it too.
func (q *queue) spilled(l messages.Lane) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, ok := q.hinted[l]; !ok {
		q.hinted[l] = hinted{math.MaxUint64, oldRetries}
	}
	q.order.Mark(l)
	signal(q.ready)
}

// again looks into a lane again.
func (q *queue) again(l messages.Lane) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.order.Mark(l)
	signal(q.ready)
}

// given notes that a message of a lane was given back, to come again after a delay.
func (q *queue) given(l messages.Lane, delay time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if delay > 0 {
		q.later = append(q.later, ripening{l, time.Now().Add(delay)})
		return
	}
	q.order.Mark(l)
	q.owed[l] = struct{}{}
	signal(q.say)
	signal(q.ready)
}

// wait waits until there is a lane to take from.
func (q *queue) wait(ctx context.Context) error {
	for {
		q.mu.Lock()
		ready := q.order.Ready()
		q.mu.Unlock()
		if ready {
			return nil
		}
		select {
		case <-q.ready:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (q *queue) share(n int) []lanes.Share {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.order.Share(n)
}

// took says what a share brought: the sequence of the last message, and whether there are more.
func (q *queue) took(s lanes.Share, got int, newest uint64, dry bool) {
	full := q.slots.full()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.order.Took(s, got, dry)
	if got > 0 {
		q.newest[s.Lane] = newest
	}
	_, untold := q.untold[s.Lane]
	switch h, waits := q.hinted[s.Lane]; {
	case waits && (h.seq <= newest || h.retries == maxRetries): // it is found, or somebody else had it
		delete(q.hinted, s.Lane)
	case waits && dry && got < s.N:
		time.AfterFunc(firstRetry*time.Duration(math.Pow(retryFactor, float64(h.retries))), func() { q.again(s.Lane) })
		q.hinted[s.Lane] = hinted{h.seq, h.retries + 1}
	}
	switch {
	case dry && !q.order.Marked(s.Lane):
		delete(q.untold, s.Lane)
	case full && untold: // the rest may be for others
		delete(q.untold, s.Lane)
		q.owed[s.Lane] = struct{}{}
		signal(q.say)
	}
}

// working is how many lanes are believed to have work, and how many could not be made so far.
func (q *queue) working() (n int, full uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.order.All()), q.full
}

// keep tells others what is owed to them, and notes what comes again, until ctx ends.
func (q *queue) keep(ctx context.Context, w *Worker, tasks *bus.Tasks) {
	ticker := time.NewTicker(spillEvery)
	defer ticker.Stop()
	var told time.Time
	for ticks := 0; ; {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			ticks++
			q.ripen(now, ticks%foreignEvery == 0)
		case <-q.say:
			if time.Since(told) < spillEvery {
				continue // the ticker does it
			}
		}
		if q.spill(ctx, w, tasks) {
			told = time.Now()
		}
		q.deadLetter(ctx, w)
	}
}

func (q *queue) ripen(now time.Time, foreign bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if foreign {
		for _, l := range q.foreign {
			q.order.Mark(l)
			signal(q.ready)
		}
	}
	q.later = slices.DeleteFunc(q.later, func(r ripening) bool {
		if now.Before(r.at) {
			return false
		}
		q.order.Mark(r.lane)
		q.owed[r.lane] = struct{}{}
		signal(q.ready)
		return true
	})
}

// deadLetter makes dead letters of the messages that are in no lane.
func (q *queue) deadLetter(ctx context.Context, w *Worker) {
	q.mu.Lock()
	unroutable := q.unroutable
	q.unroutable = nil
	q.mu.Unlock()
	for _, seq := range unroutable {
		stray, ok, err := q.bus.Stray(ctx, seq)
		switch {
		case ok:
			w.discard(ctx, stray)
		case err != nil && ctx.Err() == nil:
			w.cfg.Log.WarnContext(ctx, "look for a task without a lane", "err", err)
		}
	}
}

// spill tells all workers what is owed, if anything is. A lane that may not exist is made first: a list shows it then,
// whoever hears of it now.
func (q *queue) spill(ctx context.Context, w *Worker, tasks *bus.Tasks) bool {
	q.mu.Lock()
	owed := slices.Collect(maps.Keys(q.owed))
	clear(q.owed)
	var unknown []messages.Lane
	for _, l := range owed {
		if _, ok := q.newest[l]; !ok {
			unknown = append(unknown, l)
			q.newest[l] = 0
		}
	}
	q.mu.Unlock()
	if len(owed) == 0 {
		return false
	}
	if err := q.bus.Spill(owed); err != nil {
		w.cfg.Log.DebugContext(ctx, "tell others of lanes", "err", err)
	}
	for _, l := range unknown {
		if err := tasks.Make(ctx, l); err != nil && ctx.Err() == nil {
			q.failed(ctx, w, l, err)
		}
	}
	return true
}

// failed reports a lane that could not be made or taken from. Its tasks stay in the queue.
func (q *queue) failed(ctx context.Context, w *Worker, l messages.Lane, err error) {
	if errors.Is(err, bus.ErrLanesFull) {
		q.mu.Lock()
		q.full++
		q.mu.Unlock()
		w.cfg.Log.ErrorContext(ctx, "tasks of a tenant wait for room: raise max_consumers of the stream TASKS", "tenant", l.Tenant, "err", err)
		return
	}
	w.cfg.Log.WarnContext(ctx, "take tasks", "lane", l.String(), "err", err)
}

// repair makes the lanes of messages that have none: nobody listened to their hints, or the lane was removed.
func (q *queue) repair(ctx context.Context, w *Worker) {
	made, unroutable, err := q.bus.MendLanes(ctx, w.ackWait)
	for _, stray := range unroutable {
		w.discard(ctx, stray)
	}
	switch {
	case errors.Is(err, bus.ErrLanesFull):
		q.failed(ctx, w, messages.Lane{}, err)
	case err != nil && ctx.Err() == nil:
		w.cfg.Log.WarnContext(ctx, "look for tasks without a lane", "err", err)
	}
	for _, l := range made {
		q.given(l, 0)
	}
}

// look lists the lanes now and then, for hints may be lost, and applies what operators granted, until ctx ends.
func (q *queue) look(ctx context.Context, w *Worker) {
	var granted uint64
	for {
		granted = q.grants(w, granted)
		known := q.list(ctx, w)
		wait := w.cfg.Look/2 + rand.N(w.cfg.Look) + time.Duration(known/pageLanes)*lookPage
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// list looks at all lanes and returns how many there are.
func (q *queue) list(ctx context.Context, w *Worker) int {
	all, err := q.bus.Lanes(ctx)
	if err != nil {
		if ctx.Err() == nil {
			w.cfg.Log.WarnContext(ctx, "look at the lanes", "err", err)
		}
		return 0
	}
	mine := w.held.lanes()
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	q.mu.Lock()
	defer q.mu.Unlock()
	newest := make(map[messages.Lane]uint64, len(all))
	tries := 0
	var foreign []messages.Lane
	for _, s := range all {
		newest[s.Lane] = q.newest[s.Lane]
		switch {
		case s.Queued > 0:
			q.order.Mark(s.Lane)
		case s.InFlight > mine[s.Lane] && tries < maxTries:
			tries++
			q.order.Mark(s.Lane)
			if len(foreign) < maxForeign {
				foreign = append(foreign, s.Lane)
			}
		}
	}
	q.newest, q.foreign = newest, foreign
	signal(q.ready)
	return len(all)
}

// grants applies weights and pauses, unless nothing has changed since a revision, and returns the new one.
func (q *queue) grants(w *Worker, since uint64) uint64 {
	if w.cfg.Caps == nil {
		return since
	}
	quotas, revision := w.cfg.Caps.Granted()
	if revision == since {
		return revision
	}
	weights, paused := map[string]int{}, map[string]bool{}
	for of, quota := range quotas {
		if of.Kind != messages.QuotaTenant {
			continue
		}
		if quota.Weight > 0 {
			weights[of.Name] = quota.Weight
		}
		if quota.Paused != nil {
			paused[of.Name] = true
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.order.Grant(weights, paused)
	signal(q.ready)
	return revision
}

// leave tells others what this worker knew and does not work any more.
func (q *queue) leave() error {
	q.mu.Lock()
	all := q.order.All()
	q.mu.Unlock()
	return q.bus.Spill(all)
}
