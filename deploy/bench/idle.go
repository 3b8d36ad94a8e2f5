package main

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/deploy/bench/stage"
)

// Targets of a process with nothing to do.
const (
	maxDevPercent    = 1.0
	maxDevWakeups    = 100.0
	maxWorkerPercent = 0.2
)

// idle measures what processes use that have nothing to do: those of a fleet, and a fleet in one process.
func (b *bench) idle(ctx context.Context) (err error) {
	h, err := b.env.OpenHall(ctx, b.dir, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	work, err := measure.Spawn(ctx, stage.RoleWorker, h.Worker(b.plan.Slots), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Stop()) }()
	if err := work.Start(); err != nil {
		return err
	}
	dev, err := measure.Spawn(ctx, stage.RoleDev, stage.DevConfig{Dir: filepath.Join(h.Dir, "dev")}, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Stop()) }()
	processes := []*measure.Process{h.Servers, h.Dispatcher, work, dev}
	if err := rest(ctx, b.plan.IdleSettle); err != nil {
		return err
	}
	before := make([]measure.Usage, len(processes))
	for i, p := range processes {
		if before[i], err = p.Usage(); err != nil {
			return err
		}
	}
	began := time.Now()
	if err := rest(ctx, b.plan.IdleFor); err != nil {
		return err
	}
	for i, p := range processes {
		u, err := p.Usage()
		if err != nil {
			return err
		}
		b.report.idle(p.Role, time.Since(began), u.Minus(before[i]))
	}
	return nil
}

func rest(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *report) idle(role string, took time.Duration, u measure.Usage) {
	percent, wakeups := measure.Rounded(100*u.CPUSeconds/took.Seconds(), 2), measure.Rounded(float64(u.Wakeups)/took.Seconds(), 0)
	r.Line(struct {
		Name    string  `json:"name"`
		Process string  `json:"process"`
		Seconds float64 `json:"seconds"`
		CPU     float64 `json:"cpuPercentOfACore"`
		Wakeups float64 `json:"wakeupsPerSecond"` // of all threads; only on Linux
	}{"idle", role, measure.Rounded(took.Seconds(), 1), percent, wakeups})
	switch role {
	case stage.RoleDev:
		r.AtMost("idleCpuPercent.dev", percent, maxDevPercent)
		r.AtMost("idleWakeupsPerSecond.dev", wakeups, maxDevWakeups)
	case stage.RoleWorker:
		r.AtMost("idleCpuPercent.worker", percent, maxWorkerPercent)
	}
}
