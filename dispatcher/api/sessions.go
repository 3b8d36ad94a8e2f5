package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
)

func listSessions(ctx context.Context, q *query) (any, error) {
	tenant, err := q.tenant()
	if err != nil {
		return nil, err
	}
	return q.api.cfg.Client.Sessions(ctx, tenant)
}

func getSession(ctx context.Context, q *query) (any, error) {
	return aSession(ctx, q, q.api.cfg.Client.Session)
}

func deleteSession(ctx context.Context, q *query) (any, error) {
	return aSession(ctx, q, q.api.cfg.Client.DeleteSession)
}

func aSession(ctx context.Context, q *query, ask func(ctx context.Context, tenant, name string) (*messages.SessionStatus, error)) (any, error) {
	tenant, err := q.tenant()
	if err != nil {
		return nil, err
	}
	s, err := ask(ctx, tenant, q.r.PathValue("name"))
	if errors.Is(err, dispatcher.ErrNoSession) {
		return nil, &messages.Problem{
			Type: "about:blank", Title: http.StatusText(http.StatusNotFound), Status: http.StatusNotFound,
			Code: messages.CodeNotFound, Detail: err.Error(),
		}
	}
	return s, err
}
