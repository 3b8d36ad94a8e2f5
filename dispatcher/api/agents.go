package api

import (
	"context"
	"net/http"

	"github.com/longshore-run/longshore/messages"
)

// AgentList is all agents.
type AgentList struct {
	Agents []messages.Definition `json:"agents"`
}

func listAgents(ctx context.Context, q *query) (any, error) {
	agents, err := q.api.cfg.Client.Agents().List(ctx)
	return AgentList{agents}, err
}

func getAgent(ctx context.Context, q *query) (any, error) {
	def, err := q.api.cfg.Client.Agents().Get(ctx, q.r.PathValue("name"))
	if err != nil {
		p := problemOf(err)
		if p.Code == messages.CodeUnknownAgent {
			p.Status, p.Title, p.Field = http.StatusNotFound, http.StatusText(http.StatusNotFound), ""
		}
		return nil, p
	}
	return def, nil
}
