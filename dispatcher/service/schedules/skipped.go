package schedules

import (
	"context"
	"errors"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/schedules"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

const (
	// A day of one that comes each second; a longer row is counted no further.
	maxPassed = 100_000

	reasonMissed = "no dispatcher took it in time"
)

// skip keeps that an occurrence does not run.
func (s *Schedules) skip(ctx context.Context, sc *control.Schedule, at time.Time, reason string, ledger schedules.Ledger, revision uint64) (control.ScheduleState, error) {
	st := control.ScheduleState{At: at, Outcome: control.OutcomeSkipped, Reason: reason}
	if ledger.State != nil {
		st.Run = ledger.State.Run // which may be running
	}
	ledger.State, ledger.Taken, ledger.Pending, ledger.Refused = &st, at, false, ""
	ledger.Skipped = append(ledger.Skipped, control.Skipped{At: at, Count: 1, Reason: reason})
	_, err := s.cfg.Store.PutLedger(ctx, sc.Ref(), ledger, revision)
	return st, err
}

// settle finishes what a dispatcher that has ended, or is slow, left of the newest occurrence that was taken, before a
// later one is: either its task is in the queue, or it is listed as skipped. A task that is submitted twice is one run.
func (s *Schedules) settle(ctx context.Context, sc *control.Schedule, ledger *schedules.Ledger) error {
	if !ledger.Pending {
		return nil
	}
	run := sc.Ref().Run(ledger.Taken)
	there, err := s.isThere(ctx, run)
	if err != nil {
		return err
	}
	reason := ""
	switch {
	case there:
	case ledger.Refused != "":
		reason = "refused until the next one was due: " + ledger.Refused
	case s.cfg.Now().Sub(ledger.Taken) > control.MaxLate: // its run may have been removed after its retention
		reason = "its dispatcher ended while it submitted run " + run.Run + ", which is not there"
	default:
		if _, err := s.cfg.Admission.Submit(ctx, sc.TaskAt(ledger.Taken).Encode()); err != nil {
			if !isLasting(err) {
				return err
			}
			reason = "refused: " + strict.Clip(err.Error(), maxStateReason)
		}
	}
	if reason != "" {
		ledger.Skipped = append(ledger.Skipped, control.Skipped{At: ledger.Taken, Count: 1, Reason: reason})
	}
	ledger.Pending, ledger.Refused = false, ""
	return nil
}

// isThere reports whether a run is queued or has begun.
func (s *Schedules) isThere(ctx context.Context, run messages.Ref) (bool, error) {
	_, _, err := s.cfg.Runs.Find(ctx, run)
	if errors.Is(err, runlog.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// passOver lists the occurrences between the newest that was taken and another as skipped. What came before the schedule was
// stored as it is, or while it was paused, is none of them.
func (s *Schedules) passOver(ctx context.Context, sc *control.Schedule, until time.Time, ledger *schedules.Ledger) error {
	c, err := newCalendar(sc)
	if err != nil {
		return err
	}
	if at, ok := c.next(ledger.Taken); !ledger.Taken.IsZero() && (!ok || !at.Before(until)) {
		return nil // as it nearly always is
	}
	since, err := s.cfg.Store.Stored(ctx, sc.Ref())
	if err != nil {
		return err
	}
	if since.Before(ledger.Taken) {
		since = ledger.Taken
	}
	gap := control.Skipped{Reason: reasonMissed}
	for at, ok := c.next(since); ok && at.Before(until) && gap.Count < maxPassed; at, ok = c.next(at) {
		if gap.Count++; gap.Count == 1 {
			gap.At = at
		} else {
			gap.Last = new(at)
		}
	}
	if gap.Count > 0 {
		ledger.Skipped = append(ledger.Skipped, gap)
	}
	return nil
}
