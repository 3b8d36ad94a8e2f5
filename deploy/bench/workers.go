package main

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/deploy/bench/stage"
)

// maxFleetRatio is how much more a run may cost when many workers work.
const maxFleetRatio = 1.25

// fleetSlots are those of each worker, of the slots that one has alone elsewhere.
const fleetSlots = 4

// fleet measures the same runs worked by one worker, and by more. On one machine they share its cores: what counts is the cost of a run.
func (b *bench) fleet(ctx context.Context) error {
	var costs []together
	for _, n := range b.plan.Workers {
		t, err := b.together(ctx, crew{workers: n, slots: max(1, b.plan.Slots/fleetSlots)}, tasksOf(stage.Task(), b.plan.FleetRuns), nil)
		if err != nil {
			return fmt.Errorf("%d workers: %w", n, err)
		}
		costs = append(costs, t)
		b.report.Line(struct {
			Name    string `json:"name"`
			Workers int    `json:"workers"`
			Runs    int    `json:"runs"`
			togetherLine
		}{"fleet", n, t.runs, t.line(t.runs)}) // each of a run
	}
	b.report.AtMost("fleetCpuOfOneWorker", measure.Rounded(costs[len(costs)-1].cpu()/costs[0].cpu(), 2), maxFleetRatio)
	return nil
}
