package runlog

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// EndGone ends a run that no process can read (record.IsGone), also while it is worked, and settles it: what it held is free for others. Doing it
// again is harmless.
func (k *Controller) EndGone(ctx context.Context, run messages.Ref) error {
	last, err := k.appendGone(ctx, run)
	if err != nil || last.Seq == 0 {
		return err
	}
	return k.SettleBare(ctx, run)
}

// appendGone is EndGone without settling. It returns the end; zero: there is no log.
func (k *Controller) appendGone(ctx context.Context, run messages.Ref) (record.Entry, error) {
	for range maxConflicts {
		last, ok, err := k.Log.Last(ctx, run)
		switch {
		case err != nil:
			return record.Entry{}, fmt.Errorf("read %s: %w", run, err)
		case !ok || last.Head.Phase == record.PhaseFinished:
			return last, nil
		}
		e, err := k.append(ctx, run, last, record.Gone(run, k.Now()))
		if !errors.Is(err, ErrConflict) {
			return e, err
		}
	}
	return record.Entry{}, fmt.Errorf("end %s: %w after %d tries", run, ErrConflict, maxConflicts)
}

// lostEnd is the end of a run whose last entry cannot be read, as far as its head tells.
func lostEnd(run messages.Ref, last record.Entry) record.Entry {
	f := record.Gone(run, last.Head.Time)
	f.Result.Status = last.Head.Status
	last.Records = []record.Record{f}
	return last
}

// endWaiting ends a run that was just given a permit and cannot be woken, and releases that permit. A sweep settles the rest.
func (k *Controller) endWaiting(ctx context.Context, run messages.Ref, name string) error {
	last, err := k.appendGone(ctx, run)
	if err != nil {
		return err
	}
	last.Head.Phase = record.PhaseFinished // or purged
	return k.release(ctx, run, last.Head, name)
}
