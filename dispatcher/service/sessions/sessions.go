// Package sessions answers the requests about sessions.
package sessions

import (
	"context"
	"errors"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/messages/bus/sessions"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/memory"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

// Sessions answers the requests about sessions.
type Sessions struct {
	store      *sessions.Store
	controller *runlog.Controller
	memory     Memory
}

// Memory is long-term memory, of which what belongs to a session goes with it.
type Memory interface {
	// Erase removes the items of all collections that pass a filter. It may have removed some when it fails.
	Erase(ctx context.Context, tenant string, f memory.Filter) (int, error)
}

// New returns Sessions; memory may be nil.
func New(store *sessions.Store, controller *runlog.Controller, m Memory) *Sessions {
	return &Sessions{store, controller, m}
}

// Handlers are the requests about sessions.
func (s *Sessions) Handlers() request.Handlers {
	return request.Handlers{
		control.SubjectSessions:      s.list,
		control.SubjectSession:       s.get,
		control.SubjectSessionDelete: s.remove,
	}
}

func sessionOf(body []byte, one bool) (control.SessionRequest, error) {
	var req control.SessionRequest
	if err := strict.Decode(body, &req); err != nil {
		return req, err
	}
	return req, req.Check(one)
}

func (s *Sessions) list(ctx context.Context, body []byte) (any, error) {
	req, err := sessionOf(body, false)
	if err != nil {
		return nil, err
	}
	list, more, err := s.store.List(ctx, req.Tenant)
	if list == nil {
		list = []control.SessionStatus{} // an empty list on the wire, not null
	}
	return control.SessionList{Sessions: list, More: more}, err
}

func (s *Sessions) get(ctx context.Context, body []byte) (any, error) {
	req, err := sessionOf(body, true)
	if err != nil {
		return nil, err
	}
	found, _, err := s.store.Session(ctx, req.Tenant, req.Name)
	switch {
	case err != nil:
		return nil, err
	case found.Empty():
		return nil, control.ErrNoSession
	default:
		return control.StatusOf(&found, req.Tenant, req.Name), nil
	}
}

func (s *Sessions) remove(ctx context.Context, body []byte) (any, error) {
	req, err := sessionOf(body, true)
	if err != nil {
		return nil, err
	}
	was, err := s.controller.ForgetSession(ctx, req.Tenant, req.Name)
	gone := errors.Is(err, runlog.ErrNotFound)
	switch {
	case errors.Is(err, runlog.ErrSessionBusy):
		return nil, control.ErrSessionBusy
	case err != nil && !gone:
		return nil, err
	}
	// Of a session that is gone too: the request before may have failed here.
	erased := 0
	if s.memory != nil {
		if erased, err = s.memory.Erase(ctx, req.Tenant, memory.Filter{Session: req.Name}); err != nil {
			return nil, err
		}
	}
	if gone && erased == 0 {
		return nil, control.ErrNoSession
	}
	return control.StatusOf(&was, req.Tenant, req.Name), nil
}
