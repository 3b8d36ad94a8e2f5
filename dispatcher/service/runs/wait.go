package runs

import (
	"context"
	"errors"
	"time"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// ended is the result of a run that has ended, or does so within wait.
func (rs *Runs) ended(ctx context.Context, ref messages.Ref, wait time.Duration) (r *messages.AgentResult, err error) {
	if wait > 0 && rs.cfg.Endings != nil {
		request.Idle(ctx, func(stop <-chan struct{}) { r = rs.await(ctx, ref, wait, stop) })
	}
	if r != nil {
		return r, nil
	}
	last, q, err := rs.Find(ctx, ref)
	switch {
	case err != nil:
		return nil, err
	case q != nil || last.Head.Phase != record.PhaseFinished:
		return nil, request.Conflict("the run has not ended")
	}
	return rs.ResultOf(ctx, ref, last)
}

// removedAfter is how long a wait for a run without a log lasts before it looks whether the run was removed: most are about to begin.
const removedAfter = 250 * time.Millisecond

// await waits until a run has ended and all is done that follows from that, but for its last event, which may be stored a moment later. Nil: it
// has not, as far as is known; the caller finds out why. That an end was heard is a reason to look at the log, which alone says that there is one.
func (rs *Runs) await(ctx context.Context, ref messages.Ref, wait time.Duration, stop <-chan struct{}) *messages.AgentResult {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	ending := rs.cfg.Endings.Of(ref, stop)
	defer ending.Close()
	if ending.Ready(ctx) != nil {
		return nil
	}
	r, err := rs.end(ctx, ref, false)
	absent := errors.Is(err, runlog.ErrNotFound) // it has not begun, or was removed
	if err != nil && !absent {
		return nil
	}
	if r != nil {
		if over, err := rs.cfg.Events.HasEnded(ctx, ref); over || err != nil {
			return r
		}
	}
	for {
		first, end := ctx, context.CancelFunc(func() {})
		if absent {
			first, end = context.WithTimeout(ctx, removedAfter)
		}
		finished, err := ending.Next(first)
		end()
		if absent && first.Err() != nil && ctx.Err() == nil && err != nil {
			if absent = false; rs.cfg.Removed(ctx, ref) {
				return nil
			}
			continue
		}
		absent = false
		if err != nil {
			return r
		}
		if r == nil {
			if r, err = rs.end(ctx, ref, true); err != nil && !errors.Is(err, runlog.ErrNotFound) {
				return nil
			}
		}
		if finished && r != nil {
			return r
		}
	}
}

// end is the result of a run, which may have been heard to have ended; nil: it has not. ErrNotFound: it has no log.
func (rs *Runs) end(ctx context.Context, ref messages.Ref, heard bool) (*messages.AgentResult, error) {
	last, ok, err := rs.cfg.Controller.Log.End(ctx, ref, heard)
	switch {
	case err == nil && !ok:
		return nil, runlog.ErrNotFound
	case err != nil || last.Head.Phase != record.PhaseFinished:
		return nil, err
	default:
		return resultIn(&last)
	}
}
