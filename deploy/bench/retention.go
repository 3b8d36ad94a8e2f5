package main

import (
	"context"
	"time"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/deploy/bench/stage"
)

const (
	minPurgePace    = 0.9                   // of the runs that end
	retentionCounts = 5_000                 // runs: of fewer, the last purge is most of the time
	purgeLook       = 50 * time.Millisecond // for the last purge
)

// retention measures whether runs are purged as fast as a worker at full speed ends them, on the same machine and at the same time, and what
// that costs: the same runs are worked once without a purge and once with.
func (b *bench) retention(ctx context.Context) error {
	c := crew{workers: 1, slots: b.plan.Slots}
	without, err := b.together(ctx, c, tasksOf(stage.Task(), b.plan.Runs), nil)
	if err != nil {
		return err
	}
	var pace float64
	c.retain = b.plan.Retention
	c.ended = func(h *stage.Hall, f *stage.Finishes) error {
		err := measure.Until(ctx, purgeLook, func() (bool, error) {
			n, err := h.Stored(ctx)
			return n == 0, err
		})
		first, last := f.At(1), f.At(b.plan.Runs)
		pace = measure.Rounded(last.Sub(first).Seconds()/time.Since(first.Add(c.retain)).Seconds(), 2)
		return err
	}
	with, err := b.together(ctx, c, tasksOf(stage.Task(), b.plan.Runs), nil)
	if err != nil {
		return err
	}
	line := with.line(with.runs)
	b.report.Line(struct {
		Name      string  `json:"name"`
		Runs      int     `json:"runs"`
		Retention float64 `json:"retentionSeconds"`
		Pace      float64 `json:"purgedOfEnded"` // runs purged in a second, of those that ended in one
		Kept      float64 `json:"runsPerSecondWithoutPurge"`
		KeptCPU   float64 `json:"allCpuMicrosWithoutPurge"`
		togetherLine
	}{"retention", with.runs, c.retain.Seconds(), pace, without.line(without.runs).RunsPerSecond, without.line(without.runs).AllCPU, line})
	if with.runs >= retentionCounts {
		b.report.AtLeast("purgedOfEnded", pace, minPurgePace)
	}
	return nil
}
