// Package workers answers the requests about the workers, and about the lanes from which they take.
package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/messages/bus/roster"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// Config is what Workers works with.
type Config struct {
	Fleet *roster.Fleet
	Queue *taskqueue.Queue // has the lanes
	Log   *slog.Logger
}

// Workers answers the requests about the workers, and about the lanes from which they take.
type Workers struct{ cfg Config }

// New returns Workers.
func New(cfg Config) *Workers { return &Workers{cfg} }

// Handlers are the requests about workers and lanes.
func (ws *Workers) Handlers() request.Handlers {
	return request.Handlers{
		control.SubjectWorkers:     request.Read(ws.list),
		control.SubjectTools:       request.Read(ws.tools),
		control.SubjectWorkerDrain: request.Read(ws.drain),
		control.SubjectLanes:       request.Read(ws.lanes),
	}
}

func (ws *Workers) list(ctx context.Context, _ struct{}) (any, error) {
	all, err := ws.cfg.Fleet.Workers(ctx)
	if err != nil {
		return nil, err
	}
	list := control.WorkerList{Workers: all}
	for i := range list.Workers { // of which tenants the tasks are is not for every caller
		list.Workers[i].Begun = nil
	}
	return list, nil
}

func (ws *Workers) drain(ctx context.Context, req control.WorkerDrain) (any, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	all, err := ws.cfg.Fleet.Workers(ctx)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, w := range all {
		if w.ID == req.Worker {
			ids = []string{w.ID}
			break
		}
		if w.Name == req.Worker {
			ids = append(ids, w.ID)
		}
	}
	switch len(ids) {
	case 0:
		return nil, noWorker(req.Worker)
	case 1:
	default:
		return nil, request.Conflict(fmt.Sprintf("%d workers have the name %s: say the id of one", len(ids), strict.Clip(req.Worker, 128)))
	}
	w, err := ws.cfg.Fleet.Drain(ctx, ids[0])
	if errors.Is(err, roster.ErrNoWorker) { // it has gone meanwhile
		return nil, noWorker(req.Worker)
	}
	if err != nil {
		return nil, err
	}
	w.Begun = nil
	ws.cfg.Log.InfoContext(ctx, "worker drains", "worker", w.Name, "id", w.ID)
	return w, nil
}

func noWorker(name string) error {
	return fmt.Errorf("%w: none answers to %s", control.ErrNoWorker, strict.Clip(name, 128))
}

func (ws *Workers) lanes(ctx context.Context, req control.LanesRequest) (any, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	return ws.cfg.Queue.LaneList(ctx, req)
}
