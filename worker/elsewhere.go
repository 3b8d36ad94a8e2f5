package worker

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/worker/runner"
)

const (
	// How many workers are asked for a slot before a run waits.
	maxOffers = 3
	// How often a worker looks for runs that wait for one like it, while it knows that there are some.
	recruitEvery = time.Second
	// How soon a run that found no slot is in the list, mostly.
	listedWithin = 50 * time.Millisecond
	// How many runs one look goes past.
	maxRecruitLook = 1000
)

// elsewhere is the other workers, for one ticket.
type elsewhere struct {
	w   *Worker
	h   *hold
	run messages.Ref
}

var _ runner.Elsewhere = (*elsewhere)(nil)

// Missing implements runner.Elsewhere.
func (e *elsewhere) Missing(n *messages.Needs) string { return n.MissingFrom(e.w.cfg.Roster.Live()) }

// fitting are the live workers that fit, those with the most free slots first, in no order beyond that.
func (e *elsewhere) fitting(n *messages.Needs) []messages.WorkerStatus {
	all := slices.DeleteFunc(e.w.cfg.Roster.Live(), func(s messages.WorkerStatus) bool { return s.ID == e.w.id || !s.Fits(n) })
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	slices.SortStableFunc(all, func(a, b messages.WorkerStatus) int { return cmp.Compare(b.Slots-b.Busy, a.Slots-a.Busy) })
	return all
}

// Pass implements runner.Elsewhere.
func (e *elsewhere) Pass(ctx context.Context, n *messages.Needs) (bool, error) {
	all := e.fitting(n)
	for _, s := range all[:min(len(all), maxOffers)] {
		passed, err := e.w.held.newest(e.h).Offer(ctx, s.ID, e.run)
		if passed || err != nil && !errors.Is(err, taskqueue.ErrSilent) {
			return passed, err
		}
	}
	return false, nil
}

// Room implements taskqueue.Owner.
func (o owner) Room(run messages.Ref, ticket uint64) bool {
	if o.w.draining.Load() || o.w.held.of(run, ticket) != nil {
		return false
	}
	if o.w.fetch.Full() {
		signal(o.w.wanted)
		return false
	}
	return true
}

// Adopt implements taskqueue.Owner.
func (o owner) Adopt(d *taskqueue.Delivery) bool {
	w := o.w
	w.adopting.Lock() // a worker that drains counts its jobs
	defer w.adopting.Unlock()
	if w.draining.Load() {
		return false
	}
	slot := w.fetch.Grab()
	if slot == nil {
		return false
	}
	w.jobs.Go(func() {
		defer slot.Free()
		if err := d.Load(w.working); err != nil {
			w.cfg.Log.WarnContext(w.working, "take a task over from another worker", "err", err) // it is delivered again after the ack wait
			return
		}
		w.work(w.working, d, slot)
	})
	return true
}

// recruit wakes runs that wait for a worker like this one, as many as it has slots for, until ctx ends.
func (w *Worker) recruit(ctx context.Context) {
	passed := uint64(0) // up to where in the line no run fits
	var offered []string
	for {
		if now := w.tools(); !slices.Equal(now, offered) {
			offered, passed = now, 0 // what did not fit may fit by now
		}
		at, more, err := w.recruitFrom(ctx, passed)
		if passed = at; err != nil && ctx.Err() == nil {
			w.cfg.Log.WarnContext(ctx, "look for runs that wait for a worker", "err", err)
		}
		wait, freed := w.announceEvery, (<-chan struct{})(nil)
		if more {
			wait, freed = min(wait, recruitEvery), w.fetch.Freed()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		case <-freed:
		case <-w.wanted:
			select { // the run that found no slot is about to be listed
			case <-time.After(min(wait, listedWithin)):
			case <-ctx.Done():
			}
		}
	}
}

// recruitFrom continues in the list after a position. It returns the position reached and whether there is more.
func (w *Worker) recruitFrom(ctx context.Context, after uint64) (at uint64, more bool, err error) {
	for looked, left := 0, w.cfg.Slots-w.fetch.Busy(); ; looked++ {
		run, next, err := w.semaphores.NextIn(ctx, queue.WorkerList, after)
		switch {
		case err != nil:
			return after, true, err
		case next == 0:
			return after, false, nil
		case left <= 0 || looked == maxRecruitLook:
			return after, true, nil
		}
		woken, err := w.cfg.Controller.Recruit(ctx, run, next, w.fits)
		if err != nil {
			return after, true, err
		}
		if after = next; woken {
			left--
		}
	}
}

// fits reports whether this worker has what a run needs.
func (w *Worker) fits(n *messages.Needs) bool {
	offered := w.tools()
	return n.Missing(func(tool string) bool { return slices.Contains(offered, tool) }, w.cfg.Labels) == ""
}
