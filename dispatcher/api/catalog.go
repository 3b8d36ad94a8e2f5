package api

import (
	"context"
	"net/http"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

func listAgents(ctx context.Context, q *query, _ control.Empty) (any, error) {
	agents, err := q.api.cfg.Client.Agents().List(ctx)
	return control.AgentList{Agents: agents}, err
}

func getAgent(ctx context.Context, q *query, r control.AgentRequest) (any, error) {
	def, err := q.api.cfg.Client.Agents().Get(ctx, r.Name)
	if err != nil {
		p := problemOf(err)
		if p.Code == messages.CodeUnknownAgent {
			p.Status, p.Title, p.Field = http.StatusNotFound, http.StatusText(http.StatusNotFound), ""
		}
		return nil, p
	}
	return def, nil
}

func createKey(ctx context.Context, q *query, order control.KeyOrder) (any, error) {
	tenant, err := q.tenant()
	if err != nil {
		return nil, err
	}
	switch {
	case order.Tenant == "":
		order.Tenant = tenant
	case order.Tenant != tenant && q.r.Header.Get(control.HeaderTenant) != "":
		return nil, forbidden("the key is not for the tenant that " + control.HeaderTenant + " names")
	}
	if err := control.CheckAccess(order.Tenant, order.Roles); err != nil {
		return nil, err
	}
	if !q.who.Includes(&auth.Principal{Tenant: order.Tenant, Roles: order.Roles}) {
		return nil, forbidden("a key may only be for your own tenant, and may only do what you may do yourself")
	}
	spec := dispatcher.KeySpec{Tenant: order.Tenant, Roles: order.Roles, Name: order.Name, By: q.by("")}
	if order.Expires != nil {
		spec.Expires = *order.Expires
	}
	key, about, err := q.api.cfg.Client.Keys().Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	return control.NewKey{Key: key, APIKey: about}, nil
}
