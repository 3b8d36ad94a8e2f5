package runlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
)

// A run that waits for a person stands in the list queue.PeopleList while it does, and one that waits for a worker in
// queue.WorkerList, so that those who wait are found without a look at all runs. The log remains the truth: a run may
// stand there for a moment after its park has ended.

// listOf is the list that a run belongs in; empty: none.
func listOf(h record.Head) string {
	switch {
	case AsksPerson(h):
		return queue.PeopleList
	case h.Phase == record.PhaseParked && h.Waits == queue.ParkWorker:
		return queue.WorkerList
	default:
		return ""
	}
}

// AsksPerson reports whether a run is parked until a person decides or answers.
func AsksPerson(h record.Head) bool {
	return h.Phase == record.PhaseParked && (h.Waits == queue.ParkApproval || h.Waits == queue.ParkAnswer)
}

// Ask lists a run whose owner has just parked it for a person or a worker, before its event is published. It
// gets a new position even if an earlier park of it is still listed: who takes that one out at this moment must not take
// out this one. After an error Close sees to it.
func (k *Controller) Ask(ctx context.Context, run messages.Ref, h record.Head) error {
	list := listOf(h)
	if k.Asks == nil || list == "" {
		return nil
	}
	at, err := k.Asks.Waiting(ctx, list, run)
	if err == nil && at != 0 {
		err = k.Asks.Unwait(ctx, list, run, at)
	}
	if err == nil {
		err = k.Asks.Wait(ctx, list, run)
	}
	return listed(err, list, run)
}

// settleAsk lists a run that waits for a person or a worker unless it is listed.
func (k *Controller) settleAsk(ctx context.Context, run messages.Ref, h record.Head) error {
	list := listOf(h)
	if k.Asks == nil || list == "" {
		return nil
	}
	at, err := k.Asks.Waiting(ctx, list, run)
	if err == nil && at == 0 {
		err = k.Asks.Wait(ctx, list, run)
	}
	return listed(err, list, run)
}

func listed(err error, list string, run messages.Ref) error {
	if err != nil {
		return fmt.Errorf("list %s among the runs that wait (%s): %w", run, list, err)
	}
	return nil
}

// asked is where a run that waits for a person or a worker stands; 0: nowhere that matters. It must be asked before the record
// that ends the park is appended: the next park may be listed right after.
func (k *Controller) asked(ctx context.Context, run messages.Ref, h record.Head) uint64 {
	list := listOf(h)
	if k.Asks == nil || list == "" {
		return 0
	}
	at, err := k.Asks.Waiting(ctx, list, run)
	if err != nil {
		return 0 // the next list finds that the run no longer waits
	}
	return at
}

// unask takes out a run that no longer waits. What it leaves behind the next list takes out.
func (k *Controller) unask(ctx context.Context, list string, run messages.Ref, at uint64) {
	if at != 0 {
		_ = k.Asks.Unwait(ctx, list, run, at)
	}
}

// AsksAt is the newest entry of a run that stands at a position of queue.PeopleList, without its records; ok is false
// for a run that no longer waits for a person, which is taken out of the list.
func (k *Controller) AsksAt(ctx context.Context, run messages.Ref, at uint64) (last record.Entry, ok bool, err error) {
	last, ok, err = k.Log.Last(ctx, run)
	if err != nil {
		return last, false, fmt.Errorf("read %s: %w", run, err)
	}
	if ok && AsksPerson(last.Head) {
		return last, true, nil
	}
	k.unask(ctx, queue.PeopleList, run, at)
	return last, false, nil
}

// Recruit wakes a run that stands at a position of queue.WorkerList if fits says so of what it needs. Woken is false,
// and no error, for a run that does not fit and for one that no longer waits, which is taken out of the list. A run leaves the
// list after its wake-up, so that the next look sends the one of a worker that died before it could.
func (k *Controller) Recruit(ctx context.Context, run messages.Ref, at uint64, fits func(*messages.Needs) bool) (woken bool, err error) {
	for range maxConflicts {
		last, ok, err := k.Log.Last(ctx, run)
		switch {
		case err != nil:
			return false, fmt.Errorf("read %s: %w", run, err)
		case !ok || listOf(last.Head) != queue.WorkerList:
			if err := k.wakeIfReady(ctx, run, &last); err != nil {
				return false, err
			}
			k.unask(ctx, queue.WorkerList, run, at)
			return false, nil
		case last.Head.Needs == nil || !fits(last.Head.Needs):
			return false, nil
		}
		last, err = k.appendListed(ctx, run, last, &record.SessionGranted{Park: last.Head.ParkSeq})
		if errors.Is(err, ErrConflict) {
			continue
		}
		if record.IsGone(err) {
			return false, k.EndGone(ctx, run)
		}
		if err == nil {
			err = k.wakeIfReady(ctx, run, &last)
		}
		if err != nil {
			return false, err
		}
		k.unask(ctx, queue.WorkerList, run, at)
		return true, nil
	}
	return false, fmt.Errorf("append to %s: %w after %d tries", run, ErrConflict, maxConflicts)
}
