package service

import (
	"cmp"
	"context"
	"errors"

	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

// talk are the requests with which people speak to runs and about them.
func (s *Service) talk() map[string]answerFunc {
	return map[string]answerFunc{
		control.SubjectSteer: s.steer, control.SubjectFeedback: s.feedback, control.SubjectFeedbackList: s.feedbackList,
	}
}

// steer records what a run is told. Its owner meets the record at its next append: nothing need be aborted for it.
func (s *Service) steer(ctx context.Context, body []byte) (any, error) {
	var req control.SteerRequest
	if err := strict.Decode(body, &req); err != nil {
		return nil, err
	}
	ref, err := control.RunRequest{Tenant: req.Tenant, ID: req.ID}.Ref()
	if err == nil {
		err = req.Validate()
	}
	if err != nil {
		return nil, err
	}
	e, err := s.cfg.Controller.Steer(ctx, ref, &record.Steered{
		ID: cmp.Or(req.Control, s.cfg.Controller.NewID()), By: req.By, Message: req.Message,
	})
	switch {
	case errors.Is(err, runlog.ErrNotFound):
		if _, _, err := s.find(ctx, ref); err != nil {
			return nil, err
		}
		return nil, conflict("the run has not begun, and cannot be told anything yet")
	case errors.Is(err, runlog.ErrTold), errors.Is(err, runlog.ErrTooMuch):
		return nil, conflict(err.Error())
	case err != nil:
		return nil, err
	}
	return s.statusOf(ctx, ref, e)
}
