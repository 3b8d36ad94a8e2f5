package service

import (
	"context"
	"errors"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

// maxCancelText bounds what a person may say about a cancel, in bytes.
const maxCancelText = 1 << 10

// cancel records the request and tells the worker. A run that nobody has begun is ended here and now.
func (s *Service) cancel(ctx context.Context, body []byte) (any, error) {
	var req control.CancelRequest
	if err := strict.Decode(body, &req); err != nil {
		return nil, err
	}
	ref, err := control.RunRequest{Tenant: req.Tenant, ID: req.ID}.Ref()
	if err != nil {
		return nil, err
	}
	for _, f := range []struct{ name, text string }{{"reason", req.Reason}, {"by", req.By}} {
		if len(f.text) > maxCancelText {
			return nil, &messages.FieldError{Field: f.name, Reason: "is too long"}
		}
	}
	return s.cancelWith(ctx, ref, &record.CancelRequested{ID: s.cfg.Controller.NewID(), By: req.By, Reason: req.Reason})
}

// cancelRun is cancel for the dispatcher's own reasons.
func (s *Service) cancelRun(ctx context.Context, ref messages.Ref, reason string) error {
	reason = strict.Clip(reason, maxCancelText)
	_, err := s.cancelWith(ctx, ref, &record.CancelRequested{ID: s.cfg.Controller.NewID(), Reason: reason})
	return err
}

func (s *Service) cancelWith(ctx context.Context, ref messages.Ref, ask *record.CancelRequested) (any, error) {
	for {
		head, err := s.cfg.Controller.Control(ctx, ref, ask)
		switch {
		case errors.Is(err, runlog.ErrNotFound):
			st, err := s.cancelQueued(ctx, ref, ask)
			if errors.Is(err, runlog.ErrConflict) {
				continue // a worker has just begun it
			}
			return st, err
		case err != nil:
			return nil, err
		}
		if err := s.cfg.Bus.Nudge(ctx, ref); err != nil {
			s.cfg.Log.DebugContext(ctx, "nudge", "task_id", ref.Run, "err", err) // a hint: the heartbeat sees it too
		}
		return s.statusOf(ctx, ref, record.Entry{Head: head})
	}
}

// cancelQueued ends a run that is only queued. ErrConflict: it has a log by now.
func (s *Service) cancelQueued(ctx context.Context, ref messages.Ref, ask *record.CancelRequested) (any, error) {
	q, ok, err := s.queued(ctx, ref)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, runlog.ErrNotFound
	}
	started := s.begun(ref, q)
	why := &messages.RunError{Code: messages.CodeCancelled, Message: ask.Text()}
	res := messages.EndedResult(ref, &started.Task, messages.StatusCancelled, why, q.at, s.cfg.Controller.Now())
	last, err := s.cfg.Controller.Begin(ctx, ref, started, ask, &record.Finished{Result: res})
	if err != nil {
		return nil, err
	}
	if err := s.cfg.Controller.Settle(ctx, ref); err != nil {
		return nil, err // recorded; the ticket settles it as well
	}
	if err := s.cfg.Bus.Unqueue(ctx, ref); err != nil {
		s.cfg.Log.DebugContext(ctx, "unqueue", "task_id", ref.Run, "err", err) // a worker will find the run ended
	}
	return s.statusOf(ctx, ref, last)
}

func (s *Service) begun(ref messages.Ref, q queued) *record.Started {
	started := &record.Started{QueuedAt: q.at}
	if t, err := messages.DecodeTaskFor(ref, q.priority, q.body); err == nil {
		started.Task = *t
		started.Agent.Name = t.Agent
	} else {
		started.Task = messages.Task{ID: ref.Run, Tenant: ref.Tenant, Agent: "_", Priority: q.priority}
		started.Raw = q.body
	}
	return started
}
