package api

import (
	"context"
	"errors"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// statsOperations are those that only an index answers.
func statsOperations() []operation {
	return []operation{
		{
			method: "GET", path: "/v1/stats", id: "runStats", needs: control.Read, tag: "tasks", summary: "Get statistics of runs",
			text:     "Counts, success, cost, tokens and times of the matching runs that have started. `behind` is how many events are not counted yet.",
			failures: failuresOf(control.SubjectRunStats),
			query:    append(filterParameters(), control.Parameter{Name: "by", Text: "Group runs by agent, model, code, day or status; tool groups tool calls.", Example: "agent"}),
			reply:    control.RunStats{}, answer: runStats,
		},
	}
}

func runStats(ctx context.Context, q *query) (any, error) {
	f, err := q.filter()
	if err != nil {
		return nil, err
	}
	stats, err := q.api.cfg.Client.Runs().Stats(ctx, f, control.StatsBy(q.text("by")))
	return stats, withoutIndex(err)
}

// withoutIndex is the answer when there is no index to ask.
func withoutIndex(err error) error {
	var p *messages.Problem
	if errors.Is(err, dispatcher.ErrNoIndex) && errors.As(err, &p) {
		return p
	}
	return err
}
