package api

import (
	"context"

	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/messages"
)

func laneOperations() []operation {
	return []operation{{
		method: "GET", path: "/v1/lanes", id: "listLanes", needs: auth.ReadFleet, tag: "lanes", summary: "What waits in the queue, by tenant and priority",
		text: "Of all tenants, wake-ups first, then by priority, the fullest first; a thousand at most.",
		query: []parameter{
			{name: "of", text: "Only the lanes of this tenant.", example: "acme"},
			{name: "all", text: "Empty lanes too.", kind: "boolean"},
		},
		reply: messages.LaneList{}, answer: listLanes,
	}}
}

func listLanes(ctx context.Context, q *query) (any, error) {
	all, err := q.flag("all")
	if err != nil {
		return nil, err
	}
	return q.api.cfg.Client.Lanes(ctx, messages.LanesRequest{Tenant: q.text("of"), All: all})
}
