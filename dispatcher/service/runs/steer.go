package runs

import (
	"cmp"
	"context"
	"errors"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// steer records a message to a run. Its owner finds the record at its next append: nothing need be aborted for it.
func (rs *Runs) steer(ctx context.Context, req control.SteerRequest) (any, error) {
	ref, err := control.RunRequest{Tenant: req.Tenant, ID: req.ID}.Ref()
	if err == nil {
		err = req.Validate()
	}
	if err != nil {
		return nil, err
	}
	e, err := rs.cfg.Controller.Steer(ctx, ref, &record.Steered{
		ID: cmp.Or(req.Control, rs.cfg.Controller.NewID()), By: req.By, Message: req.Message,
	})
	switch {
	case errors.Is(err, runlog.ErrNotFound):
		if _, _, err := rs.Find(ctx, ref); err != nil {
			return nil, err
		}
		return nil, request.Conflict("the run has not started yet, and cannot receive messages; try again later")
	case errors.Is(err, runlog.ErrTold), errors.Is(err, runlog.ErrTooMuch):
		return nil, request.Conflict(err.Error())
	case err != nil:
		return nil, err
	}
	return rs.StatusOf(ctx, ref, e)
}
