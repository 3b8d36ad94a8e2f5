package runs

import (
	"context"
	"errors"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

// MaxCancelText bounds what a person may say about a cancel, in bytes.
const MaxCancelText = 1 << 10

// cancel records the request and tells the worker. A run that has not begun is ended here and now.
func (rs *Runs) cancel(ctx context.Context, req control.CancelRequest) (any, error) {
	ref, err := control.RunRequest{Tenant: req.Tenant, ID: req.ID}.Ref()
	if err != nil {
		return nil, err
	}
	for _, f := range []struct{ name, text string }{{"reason", req.Reason}, {"by", req.By}} {
		if len(f.text) > MaxCancelText {
			return nil, &messages.FieldError{Field: f.name, Reason: "is too long"}
		}
	}
	return rs.cancelWith(ctx, ref, &record.CancelRequested{ID: rs.cfg.Controller.NewID(), By: req.By, Reason: req.Reason})
}

// Cancel is a cancel for the dispatcher's own reasons.
func (rs *Runs) Cancel(ctx context.Context, ref messages.Ref, reason string) error {
	reason = strict.Clip(reason, MaxCancelText)
	_, err := rs.cancelWith(ctx, ref, &record.CancelRequested{ID: rs.cfg.Controller.NewID(), Reason: reason})
	return err
}

func (rs *Runs) cancelWith(ctx context.Context, ref messages.Ref, ask *record.CancelRequested) (any, error) {
	for {
		head, err := rs.cfg.Controller.Control(ctx, ref, ask)
		switch {
		case errors.Is(err, runlog.ErrNotFound):
			st, err := rs.cancelQueued(ctx, ref, ask)
			if errors.Is(err, runlog.ErrConflict) {
				continue // a worker has just begun it
			}
			return st, err
		case err != nil:
			return nil, err
		}
		if err := rs.cfg.Queue.Nudge(ctx, ref); err != nil {
			rs.cfg.Log.DebugContext(ctx, "nudge", "task_id", ref.Run, "err", err) // a hint: the heartbeat sees it too
		}
		if head.Phase != record.PhaseActive { // at once: those below it may hold the slots that it needs to end
			if err := rs.cfg.Controller.EndChildren(ctx, ref, head, "its parent was cancelled"); err != nil {
				rs.cfg.Log.WarnContext(ctx, "end the children of a run that was cancelled; its own end tries again", "tenant", ref.Tenant, "task_id", ref.Run, "err", err)
			}
		}
		return rs.StatusOf(ctx, ref, record.Entry{Head: head})
	}
}

// cancelQueued ends a run that is only queued. ErrConflict: it has a log by now.
func (rs *Runs) cancelQueued(ctx context.Context, ref messages.Ref, ask *record.CancelRequested) (any, error) {
	q, ok, err := rs.queued(ctx, ref)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, runlog.ErrNotFound
	}
	started := begun(ref, q)
	why := &messages.RunError{Code: messages.CodeCancelled, Message: ask.Text()}
	res := messages.EndedResult(ref, &started.Task, messages.StatusCancelled, why, q.At, rs.cfg.Controller.Now())
	last, err := rs.cfg.Controller.Begin(ctx, ref, started, ask, &record.Finished{Result: res})
	if err != nil {
		return nil, err
	}
	if err := rs.cfg.Controller.Settle(ctx, ref); err != nil {
		return nil, err // recorded; the ticket settles it as well
	}
	if err := rs.cfg.Queue.Unqueue(ctx, ref); err != nil {
		rs.cfg.Log.DebugContext(ctx, "unqueue", "task_id", ref.Run, "err", err) // a worker will find the run ended
	}
	return rs.StatusOf(ctx, ref, last)
}

func begun(ref messages.Ref, q Queued) *record.Started {
	started := &record.Started{QueuedAt: q.At, Shown: record.ShownByDefault()}
	if t, err := messages.DecodeTaskFor(ref, q.Priority, q.Body); err == nil {
		started.Task = *t
		started.Agent.Name = t.Agent
	} else {
		started.Task = messages.Task{ID: ref.Run, Tenant: ref.Tenant, Agent: "_", Priority: q.Priority}
		started.Raw = q.Body
	}
	return started
}
