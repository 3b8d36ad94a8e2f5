package runlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// earlyBy is how much earlier than its park's end a timer may fire and still count: clocks of two machines differ.
const earlyBy = 50 * time.Millisecond

// Errand runs an errand of one run. It never owns the run: it may append a record and publish a wake-up. When it
// returns nil the errand's message may be acked; doing it again is harmless.
func (k *Controller) Errand(ctx context.Context, run messages.Ref, w messages.Wake) error {
	for range maxConflicts {
		last, ok, err := k.Log.Last(ctx, run)
		if err != nil {
			return fmt.Errorf("read %s: %w", run, err)
		}
		if !ok {
			return nil // purged
		}
		if w.Errand == messages.ErrandTimer && last.Head.Phase == record.PhaseParked && last.Head.ParkSeq == w.After {
			last, err = k.expire(ctx, run, last)
			if errors.Is(err, ErrConflict) {
				continue
			}
			if record.IsGone(err) {
				return k.EndGone(ctx, run)
			}
			if err != nil {
				return err
			}
		}
		return k.wakeIfReady(ctx, run, &last)
	}
	return fmt.Errorf("append to %s: %w after %d tries", run, ErrConflict, maxConflicts)
}

// expire ends a park whose time is over, or sets its timer again when it is not.
func (k *Controller) expire(ctx context.Context, run messages.Ref, last record.Entry) (record.Entry, error) {
	p, _, err := k.Park(ctx, run, last)
	if err != nil || p == nil || p.Until == nil {
		return last, err
	}
	if k.Now().Add(earlyBy).Before(*p.Until) {
		return last, k.armTimer(ctx, run, &last)
	}
	over := &record.Expired{Park: last.Head.ParkSeq}
	if p.Approval != nil {
		over.Call = p.Call
	}
	return k.append(ctx, run, last, over)
}

// Sweep checks runs and repairs what a power failure or a lost message may have broken: a claim whose ticket is no longer
// queued, a satisfied park without its wake-up, a park without its timer, an end that was not published. Runs that no process can read
// any longer end. It returns the number of repaired runs. An error on one run does not stop it; the first maxSweepErrors of them are joined.
func (k *Controller) Sweep(ctx context.Context, runs iter.Seq2[messages.Ref, error]) (repaired int, err error) {
	var failed []error
	for run, err := range runs {
		if err != nil {
			return repaired, errors.Join(append(failed, fmt.Errorf("list runs: %w", err))...)
		}
		if ctx.Err() != nil {
			return repaired, context.Cause(ctx)
		}
		s, err := k.SweepRun(ctx, run)
		if err != nil && len(failed) < maxSweepErrors {
			failed = append(failed, err)
		}
		if s.Repaired {
			repaired++
		}
	}
	if err := k.SweepSemaphores(ctx); err != nil {
		failed = append(failed, err)
	}
	return repaired, errors.Join(failed...)
}

// Swept is what a sweep found of a run.
type Swept struct {
	Repaired bool   // something was done
	Ended    bool   // its log has ended, or is gone
	Over     bool   // nothing is left to do for it, now or later: no sweep need look at it again
	Seq      uint64 // of the last entry of an ended run; 0: its log is gone
}

// SweepRun is what Sweep does for one run.
func (k *Controller) SweepRun(ctx context.Context, run messages.Ref) (Swept, error) {
	s, err := k.repair(ctx, run)
	for try := 0; errors.Is(err, ErrConflict) && try < maxConflicts; try++ {
		s, err = k.repair(ctx, run) // who appended meanwhile need not be an owner
	}
	if record.IsGone(err) {
		s, err = Swept{Repaired: true}, k.EndGone(ctx, run)
	}
	if err != nil {
		return s, fmt.Errorf("repair %s: %w", run, err)
	}
	return s, nil
}

const maxSweepErrors = 10

func (k *Controller) repair(ctx context.Context, run messages.Ref) (Swept, error) {
	last, ok, err := k.Log.Last(ctx, run)
	if err != nil {
		return Swept{}, err
	}
	if !ok {
		return Swept{Ended: true, Over: true}, nil
	}
	if last.Head.Phase == record.PhaseFinished {
		return k.repairEnd(ctx, run, last)
	}
	repaired, err := k.repairOpen(ctx, run, last)
	return Swept{Repaired: repaired}, err
}

// repairOpen is for a run that has not ended.
func (k *Controller) repairOpen(ctx context.Context, run messages.Ref, last record.Entry) (bool, error) {
	switch last.Head.Phase {
	case record.PhaseActive:
		queued, err := k.Queue.Holds(ctx, run, last.Head.Ticket)
		if err != nil || queued {
			return false, err
		}
		e, err := k.append(ctx, run, last, &record.Lost{Ticket: last.Head.Ticket})
		if err != nil {
			return false, err
		}
		return true, k.wakeIfReady(ctx, run, &e)
	case record.PhaseReady:
		if last.Head.Cancel { // who cancelled it may have died before those below it heard
			if err := k.EndChildren(ctx, run, last.Head, "its parent was cancelled"); err != nil {
				return false, err
			}
		}
		return true, k.wakeIfReady(ctx, run, &last)
	case record.PhaseParked:
		if err := k.awaitTurn(ctx, run, last.Head); err != nil {
			return false, err
		}
		if freed, err := k.free(ctx, run, last); freed || err != nil {
			return freed, err
		}
		if err := k.repairPermits(ctx, run, last.Head); err != nil {
			return false, err
		}
		if err := k.settleAsk(ctx, run, last.Head); err != nil {
			return false, err
		}
		repaired, err := k.settleChildren(ctx, run, last.Head)
		if err != nil {
			return repaired, err
		}
		return repaired, k.armTimer(ctx, run, &last)
	default:
		return false, nil
	}
}

// endsFor is how long after their end a sweep still checks runs: a loss of power takes the last moments only.
const endsFor = time.Hour

// repairEnd settles a run whose ticket and last events were lost together after it had ended.
func (k *Controller) repairEnd(ctx context.Context, run messages.Ref, last record.Entry) (Swept, error) {
	if k.Now().Sub(last.Head.Time) > endsFor {
		return Swept{Ended: true, Over: true, Seq: last.Seq}, nil
	}
	if ended, err := k.Events.Ended(ctx, run); ended || err != nil {
		return Swept{Ended: true, Over: ended, Seq: last.Seq}, err
	}
	return Swept{Repaired: true, Ended: true, Seq: last.Seq}, k.Settle(ctx, run)
}
