package service

import (
	"context"
	"errors"
	"net/http"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

func sessionOf(body []byte, one bool) (control.SessionRequest, error) {
	var req control.SessionRequest
	if err := strict.Decode(body, &req); err != nil {
		return req, err
	}
	return req, req.Check(one)
}

func (s *Service) sessions(ctx context.Context, body []byte) (any, error) {
	req, err := sessionOf(body, false)
	if err != nil {
		return nil, err
	}
	list, more, err := s.stores.sessions.List(ctx, req.Tenant)
	if list == nil {
		list = []control.SessionStatus{} // an empty list on the wire, not null
	}
	return control.SessionList{Sessions: list, More: more}, err
}

func (s *Service) session(ctx context.Context, body []byte) (any, error) {
	req, err := sessionOf(body, true)
	if err != nil {
		return nil, err
	}
	found, _, err := s.stores.sessions.Session(ctx, req.Tenant, req.Name)
	switch {
	case err != nil:
		return nil, err
	case found.Empty():
		return nil, noSession()
	default:
		return control.StatusOf(&found, req.Tenant, req.Name), nil
	}
}

func (s *Service) deleteSession(ctx context.Context, body []byte) (any, error) {
	req, err := sessionOf(body, true)
	if err != nil {
		return nil, err
	}
	was, err := s.cfg.Controller.ForgetSession(ctx, req.Tenant, req.Name)
	switch {
	case errors.Is(err, runlog.ErrNotFound):
		return nil, noSession()
	case errors.Is(err, runlog.ErrSessionBusy):
		return nil, conflict(err.Error())
	case err != nil:
		return nil, err
	default:
		return control.StatusOf(&was, req.Tenant, req.Name), nil
	}
}

func noSession() *messages.Problem {
	return &messages.Problem{
		Type: "about:blank", Title: http.StatusText(http.StatusNotFound), Status: http.StatusNotFound,
		Code: messages.CodeNotFound, Detail: "no such session",
	}
}
