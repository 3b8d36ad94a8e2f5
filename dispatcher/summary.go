package dispatcher

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
)

// Summary returns a run in a few words: by the dispatcher's index, else by the beginning of its log, which knows the task and
// no more. A run that is queued is looked for in the queue. ErrNotFound.
func (of Runs) Summary(ctx context.Context, run messages.Ref) (*control.RunSummary, error) {
	if of.client.remote != nil {
		return of.client.summarised(ctx, run)
	}
	f := RunFilter{Tenant: run.Tenant, ID: run.Run}
	list, err := of.client.begunRuns(ctx, &f, 1)
	switch {
	case err == nil && len(list.Runs) > 0:
		return list.Runs[0], nil
	case err != nil && !errors.Is(err, ErrNoIndex) && !errors.Is(err, ErrUnavailable):
		return nil, fmt.Errorf("look up the run: %w", err)
	}
	begun, err := of.client.begun(ctx, run)
	if err == nil {
		r := control.NewRunSummary(run)
		r.Agent, r.Priority, r.Session, r.Labels = begun.Agent.Name, begun.Task.Priority, begun.Task.Session, begun.Task.Labels
		r.Input, r.Queued = begun.Task.Input.Shown(), unlessZero(begun.QueuedAt)
		if begun.Parent != nil {
			r.Parent = begun.Parent.Run
		}
		return r, nil
	}
	if !errors.Is(err, ErrNotBegun) {
		return nil, err
	}
	queued, err := of.client.queued(ctx, &f)
	if err != nil {
		return nil, fmt.Errorf("read the queue: %w", err)
	}
	if r := queued.runs[run.Run]; r != nil {
		return r, nil
	}
	return nil, ErrNotFound
}

// Task returns the task of a run, as it was submitted. ErrNotFound, ErrNotBegun.
func (of Runs) Task(ctx context.Context, run messages.Ref) (*messages.Task, error) {
	begun, err := of.client.begun(ctx, run)
	if err != nil {
		return nil, err
	}
	return &begun.Task, nil
}

// begun is the first record of a run's log.
func (c *Client) begun(ctx context.Context, run messages.Ref) (*record.Started, error) {
	for e, err := range c.Runs().Log(ctx, run) {
		if err != nil {
			return nil, err
		}
		if len(e.Records) > 0 {
			if s, ok := e.Records[0].(*record.Started); ok {
				return s, nil
			}
		}
		break
	}
	return nil, fmt.Errorf("the log of run %s does not begin with its task", run.Run)
}
