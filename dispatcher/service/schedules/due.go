package schedules

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/schedules"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

// due takes an occurrence. It may come again, and is one run all the same. Each occurrence before it has been submitted
// or is listed as skipped once its ledger is stored.
func (s *Schedules) due(ctx context.Context, d control.Due) error {
	if err := s.arm(ctx, d.ScheduleRef, d.At, false); err != nil { // first: the next one does not wait for this one
		return err
	}
	sc, err := s.cfg.Store.Get(ctx, d.ScheduleRef)
	switch {
	case errors.Is(err, schedules.ErrNoSchedule):
		return nil
	case err != nil:
		return err
	case sc.Paused || sc.Timing() != d.Timing || sc.Until != nil && d.At.After(*sc.Until):
		return nil // it was an occurrence of what the schedule has been
	}
	ledger, revision, err := s.cfg.Store.Ledger(ctx, d.ScheduleRef)
	if err != nil {
		return err
	}
	if taken := ledger.Taken; !taken.IsZero() && (d.At.Before(taken) || d.At.Equal(taken) && !ledger.Pending) {
		return nil // a later one has been taken, and this one is listed; or it was acknowledged in vain
	}
	if d.At.After(ledger.Taken) {
		if err := s.settle(ctx, sc, &ledger); err != nil {
			return err
		}
		if err := s.passOver(ctx, sc, d.At, &ledger); err != nil {
			return err
		}
	}
	late := s.cfg.Now().Sub(d.At)
	if sc.CatchUp == control.CatchUpNone && late > control.MaxLate {
		if d.At.Equal(ledger.Taken) {
			if there, err := s.isThere(ctx, sc.Ref().Run(d.At)); err != nil || there {
				return err
			}
		}
		_, err := s.skip(ctx, sc, d.At, fmt.Sprintf("missed by %s", late.Round(time.Second)), ledger, revision)
		return err
	}
	_, err = s.begin(ctx, sc, occurrence{task: sc.TaskAt(d.At), at: d.At, planned: true}, ledger, revision)
	return err
}

// An occurrence that is to begin, or a run that was asked for.
type occurrence struct {
	task    *messages.Task
	at      time.Time
	planned bool // by the schedule
}

// begin submits the task of an occurrence, if the last run of the schedule allows it, and keeps the outcome. An
// error is one that may pass.
func (s *Schedules) begin(ctx context.Context, sc *control.Schedule, o occurrence, ledger schedules.Ledger, revision uint64) (control.ScheduleState, error) {
	st := control.ScheduleState{Run: o.task.ID, At: o.at, Outcome: control.OutcomeSubmitted}
	last := ledger.State
	if last != nil && last.Run != "" && last.Run != o.task.ID && sc.Overlap != control.OverlapAllow {
		before := messages.Ref{Tenant: sc.Tenant, Run: last.Run}
		goesOn, err := s.goesOn(ctx, before)
		switch {
		case err != nil:
			return st, err
		case goesOn && sc.Overlap == control.OverlapSkip:
			reason := "run " + last.Run + " is still running"
			if o.planned {
				return s.skip(ctx, sc, o.at, reason, ledger, revision)
			}
			st = control.ScheduleState{Run: last.Run, At: o.at, Outcome: control.OutcomeSkipped, Reason: reason}
			ledger.State = &st
			_, err = s.cfg.Store.PutLedger(ctx, sc.Ref(), ledger, revision)
			return st, err
		case goesOn:
			if err := s.cfg.Runs.Cancel(ctx, before, "replaced by "+o.task.ID); err != nil && !errors.Is(err, runlog.ErrEnded) {
				return st, err
			}
		}
	}
	// Before the submit: a dispatcher that dies in between leaves an occurrence that comes again, or is settled by the one that
	// takes the next, and finds itself here.
	ledger.State = &st
	if o.planned {
		ledger.Taken, ledger.Pending, ledger.Refused = o.at, true, ""
	}
	revision, err := s.cfg.Store.PutLedger(ctx, sc.Ref(), ledger, revision)
	if err != nil {
		return st, err
	}
	_, failed := s.cfg.Admission.Submit(ctx, o.task.Encode())
	lasting := failed != nil && isLasting(failed)
	switch {
	case failed != nil && !lasting && !o.planned:
		return st, failed
	case failed != nil && !lasting:
		ledger.Refused = strict.Clip(failed.Error(), maxStateReason)
	case failed != nil:
		st.Outcome, st.Reason = control.OutcomeFailed, strict.Clip(failed.Error(), maxStateReason)
		s.cfg.Log.WarnContext(ctx, "schedule refused", "tenant", sc.Tenant, "schedule", sc.Name, "err", failed)
		if o.planned {
			ledger.Skipped = append(ledger.Skipped, control.Skipped{At: o.at, Count: 1, Reason: "refused: " + st.Reason})
		}
		failed = nil
		fallthrough
	default:
		if o.planned {
			ledger.Pending = false
		}
	}
	_, err = s.cfg.Store.PutLedger(ctx, sc.Ref(), ledger, revision)
	if err != nil && !errors.Is(err, schedules.ErrScheduleMoved) { // the dispatcher that moved it has settled this one
		return st, errors.Join(failed, err)
	}
	return st, failed
}

// isLasting reports whether a task that was refused would be refused again.
func isLasting(err error) bool {
	p := request.Problem(err)
	return p.Status < http.StatusInternalServerError && !p.Retryable
}

// maxStateReason bounds what a state says about a refused task, in bytes.
const maxStateReason = 200
