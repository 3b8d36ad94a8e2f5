package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/deploy/bench/stage"
	"github.com/longshore-run/longshore/dispatcher"
)

const (
	maxLongRatio = 2.0 // of a step of the longest runs to one of the shortest
	longSlots    = 16
	longAsks     = 5 // of each question; the median counts
)

// long measures runs of few steps and of many. Each length has as many runs as make the same number of steps.
func (b *bench) long(ctx context.Context) error {
	var perStep []float64
	for _, steps := range b.plan.Lengths {
		runs := max(1, b.plan.LongSteps/steps)
		var status, log time.Duration
		t, err := b.together(ctx, crew{workers: 1, slots: longSlots, steps: steps, profile: fmt.Sprintf(".long%d", steps)}, tasksOf(stage.LongTask(), runs), func(h *stage.Hall) (err error) {
			status, log, err = askLong(ctx, h, steps)
			return err
		})
		if err != nil {
			return fmt.Errorf("%d steps: %w", steps, err)
		}
		line := t.line(runs * steps)
		perStep = append(perStep, line.AllCPU)
		b.report.Line(struct {
			Name   string  `json:"name"`
			Steps  int     `json:"steps"`
			Runs   int     `json:"runs"`
			Status float64 `json:"statusMs"`
			Log    float64 `json:"logMs"`
			togetherLine
		}{"long", steps, runs, measure.Millis(status), measure.Millis(log), line}) // each of a step
	}
	b.report.AtMost("longCpuPerStepOfFirst", measure.Rounded(perStep[len(perStep)-1]/perStep[0], 2), maxLongRatio)
	return nil
}

// askLong is how long it takes to ask for the status of a run that has ended, and for its log.
func askLong(ctx context.Context, h *stage.Hall, steps int) (status, log time.Duration, err error) {
	list, err := h.Client.Runs().List(ctx, dispatcher.RunFilter{Limit: 1})
	if err != nil {
		return 0, 0, err
	}
	if len(list.Runs) != 1 {
		return 0, 0, errors.New("the run index has no run")
	}
	if s := list.Runs[0]; s.Steps != steps {
		return 0, 0, fmt.Errorf("run %s has %d steps (%s)", s.ID, s.Steps, s.Status)
	}
	run := dispatcher.Run(list.Runs[0].ID)
	statuses, err := measure.SeriesOf(ctx, 0, longAsks, func(ctx context.Context) error {
		_, err := h.Client.Status(ctx, run)
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	logs, err := measure.SeriesOf(ctx, 0, longAsks, func(ctx context.Context) error {
		for _, err := range h.Client.Runs().Log(ctx, run) {
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	return measure.Percentile(statuses, 0.5), measure.Percentile(logs, 0.5), nil
}
