package api

import (
	"context"
	"errors"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/auth"
	"github.com/longshore-run/longshore/messages"
)

// statsOperations are those that only an index answers.
func statsOperations(run string) []operation {
	return []operation{
		{
			method: "GET", path: "/v1/stats", id: "runStats", needs: auth.Read, tag: "tasks", summary: "What became of runs, added up",
			text: "Counts, success, cost, tokens and times of the runs that have begun and fit. `behind` says how many events are not counted yet. " +
				"501: this dispatcher has no index of runs.",
			query: append(filterParameters(), parameter{name: "by", text: "Tell runs apart by agent, model, code, day or status; tool adds up calls of tools.", example: "agent"}),
			reply: messages.RunStats{}, answer: runStats,
		},
		{
			method: "GET", path: "/v1/tasks/" + run + "/steps", id: "taskSteps", needs: auth.Read, tag: "tasks", summary: "The steps of a run, with what they took and cost",
			text: "At most 1000. 501: this dispatcher has no index of runs.", reply: messages.StepList{}, answer: taskSteps,
		},
		{
			method: "GET", path: "/v1/index", id: "indexStatus", needs: auth.ReadFleet, tag: "tasks", summary: "How far the index of runs is",
			text: "Of the dispatcher that answers. 501: it has no index of runs.", reply: messages.IndexStatus{}, answer: indexStatus,
		},
	}
}

func runStats(ctx context.Context, q *query) (any, error) {
	f, err := q.filter()
	if err != nil {
		return nil, err
	}
	stats, err := q.api.cfg.Client.Stats(ctx, f, messages.StatsBy(q.text("by")))
	return stats, withoutIndex(err)
}

func taskSteps(ctx context.Context, q *query) (any, error) {
	run, err := q.run()
	if err != nil {
		return nil, err
	}
	list, err := q.api.cfg.Client.Steps(ctx, run)
	return list, withoutIndex(err)
}

func indexStatus(ctx context.Context, q *query) (any, error) {
	status, err := q.api.cfg.Client.Index(ctx)
	return status, withoutIndex(err)
}

// withoutIndex is the answer when there is no index to ask.
func withoutIndex(err error) error {
	var p *messages.Problem
	if errors.Is(err, dispatcher.ErrNoIndex) && errors.As(err, &p) {
		return p
	}
	return err
}
