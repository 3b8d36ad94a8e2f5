package dispatcher

import (
	"context"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
)

// Errors about workers.
var (
	// ErrNoWorker means that no worker answers to the name or id.
	ErrNoWorker = control.ErrNoWorker
	// ErrManyWorkers means that several workers have the name.
	ErrManyWorkers = control.ErrManyWorkers
)

// Workers returns the workers that answer within half a second, by name.
func (f Fleet) Workers(ctx context.Context) ([]messages.WorkerStatus, error) {
	var out control.WorkerList
	err := f.client.request(ctx, control.SubjectWorkers, struct{}{}, &out)
	return out.Workers, err
}

// Drain has a worker, by its id or its name, take nothing new, hand its runs back after their step, and end. When it
// returns the worker has heard. ErrNoWorker, ErrManyWorkers.
func (f Fleet) Drain(ctx context.Context, worker string) (*messages.WorkerStatus, error) {
	return ask[messages.WorkerStatus](ctx, f.client, control.SubjectWorkerDrain, control.WorkerDrain{Worker: worker})
}

// Lanes tells what waits in the queue, by tenant and priority; a thousand lanes at most.
func (f Fleet) Lanes(ctx context.Context, req control.LanesRequest) (*control.LaneList, error) {
	return ask[control.LaneList](ctx, f.client, control.SubjectLanes, req)
}

// ErrNotPaused means that there is no pause to end.
var ErrNotPaused = control.ErrNotPaused

// Pauses returns all tenants, agents and providers that are paused, by kind and name.
func (f Fleet) Pauses(ctx context.Context) (*control.PauseList, error) {
	return ask[control.PauseList](ctx, f.client, control.SubjectPauses, struct{}{})
}

// Pause keeps runs of a tenant or an agent from their next step, or models of a provider from being called, until it is
// resumed. What is paused already stays so, and is returned.
func (f Fleet) Pause(ctx context.Context, of queue.QuotaRef, by, reason string) (*control.PausedThing, error) {
	return ask[control.PausedThing](ctx, f.client, control.SubjectPause, control.PauseRequest{QuotaRef: of, By: by, Reason: reason})
}

// Resume ends a pause, which it returns, and the runs that it kept continue. ErrNotPaused: there is none.
func (f Fleet) Resume(ctx context.Context, of queue.QuotaRef, by string) (*control.PausedThing, error) {
	return ask[control.PausedThing](ctx, f.client, control.SubjectResume, control.PauseRequest{QuotaRef: of, By: by})
}
