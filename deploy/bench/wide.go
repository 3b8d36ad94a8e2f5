package main

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/deploy/bench/stage"
)

// maxWideRatio is how much more a run may cost when there are many tenants.
const maxWideRatio = 1.5

// wide measures the same runs of one tenant, and of many, each of which has lanes of its own.
func (b *bench) wide(ctx context.Context) error {
	many := make([]string, b.plan.Tenants)
	for i := range many {
		many[i] = fmt.Sprintf("tenant%d", i)
	}
	var costs []together
	for _, tenants := range [][]string{many[:1], many} {
		t, err := b.together(ctx, crew{workers: 1, slots: b.plan.Slots, profile: fmt.Sprintf(".wide%d", len(tenants))}, tasksOf(stage.Task(), b.plan.WideRuns, tenants...), nil)
		if err != nil {
			return fmt.Errorf("%d tenants: %w", len(tenants), err)
		}
		costs = append(costs, t)
		b.report.Line(struct {
			Name    string `json:"name"`
			Tenants int    `json:"tenants"`
			Runs    int    `json:"runs"`
			togetherLine
		}{"wide", len(tenants), t.runs, t.line(t.runs)}) // each of a run
	}
	b.report.AtMost("wideCpuOfOneTenant", measure.Rounded(costs[1].cpu()/costs[0].cpu(), 2), maxWideRatio)
	return nil
}
