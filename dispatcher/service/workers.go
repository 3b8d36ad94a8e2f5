package service

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/roster"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// workforce are the requests about workers.
func (s *Service) workforce() map[string]answerFunc {
	return map[string]answerFunc{
		control.SubjectWorkers:     asked(s.workers),
		control.SubjectWorkerDrain: asked(s.drainWorker),
	}
}

func (s *Service) workers(ctx context.Context, _ struct{}) (any, error) {
	all, err := s.stores.workers.Workers(ctx)
	if err != nil {
		return nil, err
	}
	list := control.WorkerList{Workers: all}
	for i := range list.Workers { // whose tasks they are is not for everybody
		list.Workers[i].Begun = nil
	}
	return list, nil
}

func (s *Service) drainWorker(ctx context.Context, req control.WorkerDrain) (any, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	all, err := s.stores.workers.Workers(ctx)
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
		return nil, conflict(fmt.Sprintf("%d workers have the name %s: say the id of one", len(ids), strict.Clip(req.Worker, 128)))
	}
	w, err := s.stores.workers.Drain(ctx, ids[0])
	if errors.Is(err, roster.ErrNoWorker) { // it has gone meanwhile
		return nil, noWorker(req.Worker)
	}
	if err != nil {
		return nil, err
	}
	w.Begun = nil
	s.cfg.Log.InfoContext(ctx, "worker drains", "worker", w.Name, "id", w.ID)
	return w, nil
}

func noWorker(name string) *messages.Problem {
	return missing(messages.CodeNotFound, fmt.Errorf("no worker answers to %s", strict.Clip(name, 128)))
}
