package dispatcher

import (
	"context"
	"errors"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// Errors about workers.
var (
	// ErrNoWorker means that no worker answers to the name or id.
	ErrNoWorker = errors.New("no such worker")
	// ErrManyWorkers means that several workers have the name.
	ErrManyWorkers = errors.New("several workers have the name")
)

// Workers are the workers that answer within half a second, by name.
func (c *Client) Workers(ctx context.Context) ([]messages.WorkerStatus, error) {
	var out control.WorkerList
	err := c.request(ctx, control.SubjectWorkers, struct{}{}, &out)
	return out.Workers, err
}

// DrainWorker has a worker, by its id or its name, take nothing new, hand its runs back after their step, and end. When it
// returns the worker has heard. ErrNoWorker, ErrManyWorkers.
func (c *Client) DrainWorker(ctx context.Context, worker string) (*messages.WorkerStatus, error) {
	var out messages.WorkerStatus
	err := c.request(ctx, control.SubjectWorkerDrain, control.WorkerDrain{Worker: worker}, &out)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, ErrNoWorker
	case err != nil:
		return nil, conflictAs(err, ErrManyWorkers)
	}
	return &out, nil
}
