package api

import (
	"context"
	"strconv"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// logOperations are those on the log of a run.
func logOperations(run string) []operation {
	return []operation{
		{
			method: "GET", path: "/v1/tasks/" + run + "/log", id: "getLog", needs: control.Read, tag: "tasks", summary: "Get the log of a run",
			failures: failuresOf(control.SubjectLog),
			text:     "Entries as they are stored, oldest first: what `longshore replay` reads.",
			query: []control.Parameter{
				{Name: "after", Text: "Only entries with a higher sequence: that of the last entry of the previous page.", Kind: "integer"},
				{Name: "limit", Text: "Maximum number of entries: up to 1000, 100 by default.", Kind: "integer"},
			},
			reply: control.LogPage{}, answer: getLog,
		},
	}
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
	return q.api.cfg.Client.Runs().LogPage(ctx, run, after, limit)
}
