package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/worker/agent"
)

// journal is the owner's view of the run's log, with the state folded from it. Only the execution's goroutine uses it.
type journal struct {
	*job

	own       *ownership
	voice     *voice
	rules     *policyWork
	footprint *footprint
	decide    func(*agent.State) ([]record.Record, agent.Action, error) // returns the decisions for a state
	paid      context.Context                                           //nolint:containedctx // of Run; for what is recorded even when the worker stops

	state      *agent.State  // written by commit, catchUp and hydrate
	tip        *record.Entry // what this owner appended last, written by commit and the claimer; nil: nothing yet
	out        runlog.Outbox // takes the events of each entry
	trial      *Trial        // written by the claimer; nil: not in quarantine
	entered    bool          // it may commit; written by enter and leave
	since      time.Time     // when it was claimed, or last heard from its model; written by heard
	remembered time.Time     // when the state was cached last; written by rememberMeanwhile

	rememberedStep int            // the step of that state; likewise
	remembering    sync.WaitGroup // while a state is encoded beside an append
}

// heard records that the model has answered.
func (x *journal) heard() { x.since = time.Now() }

// bound aborts the call that begins now when the run's deadline passes. The next plan then ends the run. The returned function
// releases the timer.
func (x *journal) bound(abort context.CancelCauseFunc) (end func()) { return x.boundBy(x.state, abort) }

// boundBy is bound for the deadline in a state.
func (x *journal) boundBy(s *agent.State, abort context.CancelCauseFunc) (end func()) {
	at, _, ok := s.Ends()
	if !ok {
		return func() {}
	}
	timer := time.AfterFunc(at.Sub(x.now()), func() { abort(errControl) })
	return func() { timer.Stop() }
}

// rests reports whether this owner has ended or parked the run.
func (x *journal) rests() bool { return x.state.Result != nil || x.state.Parked != nil }

// endTrial ends the run's trial, if any: the run has made progress, or is released.
func (x *journal) endTrial(progress bool) {
	if x.trial != nil {
		x.trial.End(progress)
		x.trial = nil
	}
}

// commit appends what the last action reported together with what the next one decides, in one entry, and returns
// that next action. It is the only way in which an owner changes its run.
//
// A report (a paid reply, a tool's result) stays true whatever others appended meanwhile: after a conflict it is appended again. A
// decision (an intent, a park, the end) is made anew for the new state.
func (x *journal) commit(ctx context.Context, reports ...record.Record) (agent.Action, error) {
	for {
		action, err := x.commitAt(ctx, reports...)
		if !errors.Is(err, runlog.ErrConflict) {
			return action, err
		}
		if err := x.catchUp(ctx, true); err != nil {
			return nil, err
		}
	}
}

// commitPaid is commit for a report that arrives when the worker must stop at once: what was paid for is recorded before the run is
// handed back.
func (x *journal) commitPaid(reports ...record.Record) (agent.Action, error) {
	return x.commit(x.paid, reports...)
}

// commitAt is commit at the known position. ErrConflict: the log has grown.
func (x *journal) commitAt(ctx context.Context, reports ...record.Record) (agent.Action, error) {
	if err := x.enter(ctx); err != nil {
		return nil, err
	}
	defer x.leave()
	next := x.state.Clone()
	for _, r := range reports {
		if err := next.Advance(r); err != nil {
			return nil, err
		}
	}
	decisions, action, err := x.decide(next)
	if err != nil {
		return nil, err
	}
	records := append(slices.Clip(reports), decisions...)
	if len(records) == 0 {
		return action, nil
	}
	switch err := x.room(ctx, next, len(reports) > 0); {
	case errors.Is(err, errControl):
		return x.commitAt(ctx, reports...) // with its end
	case err != nil:
		return nil, err
	}
	e, err := x.append(ctx, x.state.Seq, &x.state.Head, records...)
	if err != nil {
		return nil, err
	}
	next.Seq, next.Head = e.Seq, e.Head
	x.state, x.tip = next, e
	if next.StartedAt.IsZero() {
		next.StartedAt = e.Head.Time
	}
	if e.Head.Attempt == 0 {
		x.endTrial(true)
	}
	_ = x.cfg.Controller.Ask(ctx, x.run, e.Head) // so that a park is listed before its event is seen; Close tries again
	runlog.Publish(ctx, x.run, e, x.out)
	x.voice.recount(ctx, records)
	if next.Parked != nil {
		x.remembering.Wait() // the older state would take the place of this one
		x.remember(x.rules.of(next.Agent))()
	}
	return action, nil
}

// room waits for the memory that the append takes which leads to a state. Others may commit meanwhile.
func (x *journal) room(ctx context.Context, next *agent.State, reported bool) error {
	ok, err := x.footprint.fits(next)
	if ok || err != nil {
		return err
	}
	x.leave()
	if err := x.footprint.grow(ctx, next, reported); err != nil {
		return err
	}
	return x.enter(ctx)
}

// enter waits for the commit limiter, unless the run has entered already.
func (x *journal) enter(ctx context.Context) error {
	if x.entered {
		return nil
	}
	err := x.r.commits.enter(ctx, x.since)
	x.entered = err == nil
	return err
}

func (x *journal) leave() {
	if x.entered {
		x.entered = false
		x.r.commits.leave()
	}
}

// append is the owner's only append.
func (x *journal) append(ctx context.Context, last uint64, prev *record.Head, rs ...record.Record) (*record.Entry, error) {
	e := x.entry(prev, rs)
	seq, err := x.log.Append(ctx, x.run, last, *e)
	if err != nil {
		return nil, fmt.Errorf("append: %w", err)
	}
	x.own.moved(seq, e.Head.Has(record.KindClaimed))
	e.Place(seq)
	return e, nil
}

// entry returns the entry to append after one with the head prev.
func (x *journal) entry(prev *record.Head, rs []record.Record) *record.Entry {
	e := &record.Entry{Head: record.Follow(*prev, rs...), Records: rs}
	e.Head.ID, e.Head.Time = x.cfg.Controller.NewID(), x.now()
	e.Head.EventsThrough = max(prev.EventsThrough, x.out.Through())
	if x.trial != nil && e.Head.Has(record.KindClaimed) {
		e.Head.Alone = x.trial.Alone
	}
	return e
}

// replan reads what others appended and plans again.
func (x *journal) replan(ctx context.Context) (agent.Action, error) {
	if err := x.catchUp(ctx, false); err != nil {
		return nil, err
	}
	return x.commit(ctx)
}

// catchUp folds the entries that others appended and publishes their events, which only the owner does. An errFenced means that another
// worker owns the run, or that the log is not the one that was folded; then nothing is published. If must is set and there is no new
// entry, the log is not the one that was folded either.
func (x *journal) catchUp(ctx context.Context, must bool) error {
	x.own.resume()
	var tail []record.Entry
	for e, err := range x.log.Read(ctx, x.run, x.state.Seq, runlog.Tail) {
		if err != nil {
			return fmt.Errorf("read log: %w", err)
		}
		if e.Head.Claim != x.claimID || e.Head.Phase != record.PhaseActive {
			return errFenced
		}
		tail = append(tail, e)
	}
	if must && len(tail) == 0 { // shorter than what we know: the log was created anew
		return errFenced
	}
	x.remembering.Wait()
	for i := range tail {
		e := &tail[i]
		if err := x.state.Apply(*e); err != nil {
			return err
		}
		x.own.moved(e.Seq, false)
		runlog.Publish(ctx, x.run, e, x.out)
	}
	return nil
}

// outlive returns a context that outlives ctx for a moment when ctx is cancelled with ErrShutdown. End releases it.
func outlive(ctx context.Context) (_ context.Context, end func()) {
	later, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), ErrShutdown) {
			select {
			case <-time.After(handBackTimeout):
			case <-later.Done():
			}
		}
		cancel(context.Cause(ctx))
	})
	return later, func() {
		stop()
		cancel(nil)
	}
}
