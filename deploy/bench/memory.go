package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/deploy/bench/stage"
)

// maxMemoryPerRun is in bytes: 2 GB for a million.
const maxMemoryPerRun = 2000.0

// memory measures what NATS has in memory of runs that are retained and that nothing looks at, for more of them than a worker could work in
// the time: it stores the subjects of runs and nothing else.
func (b *bench) memory(ctx context.Context) (err error) {
	s, err := b.env.OpenServers(ctx, b.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	empty, err := atRest(s)
	if err != nil {
		return err
	}
	var last float64
	stored := 0
	for _, n := range b.plan.Copies {
		if err := s.Retain(ctx, n-stored); err != nil {
			return fmt.Errorf("%d runs: %w", n, err)
		}
		stored = n
		hot, err := atRest(s)
		if err != nil {
			return err
		}
		if err := rest(ctx, b.plan.RetainedSettle); err != nil {
			return err
		}
		idle, err := s.Servers.Usage()
		if err != nil {
			return err
		}
		settled, err := atRest(s)
		if err != nil {
			return err
		}
		if err := s.Servers.WriteHeap(b.plan.HeapProfile); err != nil {
			return err
		}
		took, err := s.RestartServers(ctx, b.env)
		if err != nil {
			return err
		}
		fresh, err := atRest(s)
		if err != nil {
			return err
		}
		per := func(now, empty uint64) float64 { return measure.Rounded((float64(now)-float64(empty))/float64(n), 0) }
		last = per(settled.Resident, empty.Resident)
		b.report.Line(struct {
			Name       string  `json:"name"`
			Runs       int     `json:"runs"`
			Subjects   int     `json:"subjectsPerRun"`
			HotMB      float64 `json:"natsHotMb"` // after a garbage collection
			IdleMB     float64 `json:"natsSettledIdleMb"`
			MB         float64 `json:"natsSettledMb"` // after a garbage collection
			PerRun     float64 `json:"natsSettledBytesPerRun"`
			Heap       float64 `json:"natsSettledHeapBytesPerRun"`
			FreshMB    float64 `json:"natsRestartedMb"`
			FreshHeap  float64 `json:"natsRestartedHeapBytesPerRun"`
			StartTook  float64 `json:"natsRestartSeconds"`
			StartedCPU float64 `json:"natsRestartCpuSeconds"`
		}{
			"memory", n, len(stage.Subjects(s.Bundled)) + 1, measure.Megabytes(hot.Resident), measure.Megabytes(idle.Resident),
			measure.Megabytes(settled.Resident), last, per(settled.LiveBytes, empty.LiveBytes), measure.Megabytes(fresh.Resident),
			per(fresh.LiveBytes, empty.LiveBytes), measure.Rounded(took.Seconds(), 3), measure.Rounded(fresh.CPUSeconds, 2),
		})
	}
	if stored >= growthCounts {
		b.report.AtMost("memoryNatsSettledBytesPerRun", last, maxMemoryPerRun)
	}
	return nil
}

// atRest is what the servers have after a garbage collection.
func atRest(s *stage.Stage) (u measure.Usage, err error) {
	if err := s.Servers.Rest(); err != nil {
		return u, err
	}
	return s.Servers.Usage()
}
