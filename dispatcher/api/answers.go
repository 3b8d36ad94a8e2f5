package api

import (
	"context"
	"encoding/json"

	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// answer makes the answer to an operation that the API does not relay, because it takes several requests. Nil: it is relayed.
type answer func(o *control.Operation) func(ctx context.Context, q *query) (any, error)

func (a answer) by(o *control.Operation) func(ctx context.Context, q *query) (any, error) {
	if a == nil {
		return nil
	}
	return a(o)
}

// answers are those of the operations that the API answers itself, by their ids.
func answers() map[string]answer {
	return map[string]answer{
		"submitTask":  func(*control.Operation) func(context.Context, *query) (any, error) { return submitTask },
		"listTasks":   to(listTasks),
		"cancelTasks": to(cancelTasks),
		"getTask":     to(getTask),
		"getLog":      to(getLog),
		"retryBatch":  to(retryBatch),
		"listAgents":  to(listAgents),
		"getAgent":    to(getAgent),
		"createKey":   to(createKey),
		"runSchedule": to(runSchedule),
	}
}

// to answers the request of an operation, read as its value says.
func to[Request any](do func(ctx context.Context, q *query, r Request) (any, error)) answer {
	return func(o *control.Operation) func(ctx context.Context, q *query) (any, error) {
		return func(ctx context.Context, q *query) (any, error) {
			_, body, err := q.request(control.Table{*o})
			if err != nil {
				return nil, err
			}
			var r Request
			if err := strict.Decode(body, &r); err != nil {
				return nil, overHTTP(o, problemOf(err))
			}
			reply, err := do(ctx, q, r)
			if err != nil || o.Location == "" {
				return reply, err
			}
			said, err := json.Marshal(reply)
			if err != nil {
				return nil, err
			}
			return replied(o, said)
		}
	}
}
