package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/messages"
)

// forkOperations are those on the log of a run.
func forkOperations(run string) []operation {
	return []operation{
		{
			method: "POST", path: "/v1/tasks/" + run + "/fork", id: "forkTask", needs: auth.Submit, tag: "tasks", summary: "Make a new run from the beginning of another one",
			text: "The new run begins with the steps before `at` and makes that step anew, perhaps with another agent or model. Its files do " +
				"not travel: it begins with an empty folder. It is stored when this returns; the same fork with the same `newId` is one run.",
			body: Fork{}, reply: messages.ForkReply{}, status: http.StatusAccepted, answer: forkTask,
		},
		{
			method: "GET", path: "/v1/tasks/" + run + "/log", id: "getLog", needs: auth.Read, tag: "tasks", summary: "The log of a run",
			text: "Entries as they are stored, oldest first: what `longshore replay` reads.",
			query: []parameter{
				{name: "after", text: "Only entries with a higher sequence: that of the last entry of the page before.", kind: "integer"},
				{name: "limit", text: "At most so many, 1000 at most; 100 by default.", kind: "integer"},
			},
			reply: messages.LogPage{}, answer: getLog,
		},
	}
}

// Fork is the body of a fork.
type Fork struct {
	At       int    `json:"at"`                 // the first step that is made anew, from 1
	Agent    string `json:"agent,omitempty"`    // whose definition holds from then on
	Revision uint64 `json:"revision,omitempty"` // of the agent; default: as it is now
	Model    string `json:"model,omitempty"`    // in place of the agent's models
	NewID    string `json:"newId,omitempty"`    // of the new run
}

func forkTask(ctx context.Context, q *query) (any, error) {
	run, err := q.run()
	if err != nil {
		return nil, err
	}
	var f Fork
	if err := q.read(&f); err != nil {
		return nil, err
	}
	req := messages.ForkRequest{At: f.At, Agent: f.Agent, Revision: f.Revision, Model: f.Model, NewID: f.NewID}
	if err := req.Check(); err != nil {
		return nil, err
	}
	reply, err := q.api.cfg.Client.Fork(ctx, run, req)
	if err != nil {
		return nil, err
	}
	return &replyOf{
		status: http.StatusAccepted, header: http.Header{"Location": {"/v1/tasks/" + reply.ID}}, body: reply,
	}, nil
}

func getLog(ctx context.Context, q *query) (any, error) {
	run, err := q.run()
	if err != nil {
		return nil, err
	}
	limit, err := q.limit(maxListed)
	if err != nil {
		return nil, err
	}
	after := uint64(0)
	if v := q.text("after"); v != "" {
		if after, err = strconv.ParseUint(v, 10, 63); err != nil {
			return nil, &messages.FieldError{Field: "after", Reason: "must be the sequence of an entry"}
		}
	}
	return q.api.cfg.Client.LogPage(ctx, run, after, limit)
}
