package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/deploy/bench/stage"
)

// plan says how much is measured.
type plan struct {
	Limit        time.Duration // of everything
	Warmup       int           // runs before the measurement
	Rounds       int           // of throughput and floor, in turn: what else the machine does hits both
	Runs         int           // of each round, of its floor, of the submits, and of the retention
	Slots        int           // concurrent runs of the throughput and its floor
	Submitters   int           // concurrent submits
	LatencyRuns  int           // one after the other
	CapacityRuns int           // at the same time
	ModelDelay   time.Duration // of each model call of the capacity

	AdmissionSubmits int // by each way
	FirstEvents      int // likewise
	Watchers         int // over HTTP, if there are files for so many
	WatchersPerRun   int
	Backlog          int // tasks of the busy tenant of the fairness
	FairRuns         int // of the quiet one, one after the other
	FairSlots        int
	FairDelay        time.Duration // of each model call of the fairness
	IdleSettle       time.Duration // before the idle processes are measured
	IdleFor          time.Duration // how long they are
	Lengths          []int         // steps of the long runs
	LongSteps        int           // of all runs of a length together, at least
	Tenants          int           // of the wide runs
	WideRuns         int
	Workers          []int // of the fleet
	FleetRuns        int
	Retention        time.Duration // of the runs that are purged: less than it takes to work them
	Retained         []int         // runs at each size of the growth
	RetainedSettle   time.Duration // how long they rest before NATS has settled, and sweeps should find nothing to do
	RetainedSteps    int           // model calls of each. Default 1
	Copies           []int         // runs of the memory
	HeapProfile      string        // file for what NATS holds then; empty: none
}

func fullPlan() plan {
	return plan{
		Limit: time.Hour, Warmup: 1000, Rounds: 3, Runs: 5000, Slots: 256, Submitters: 64,
		LatencyRuns: 1000, CapacityRuns: 5000, ModelDelay: 2 * time.Second,
		AdmissionSubmits: 3000, FirstEvents: 500, Watchers: 10_000, WatchersPerRun: 100,
		Backlog: 20_000, FairRuns: 200, FairSlots: 64, FairDelay: 20 * time.Millisecond,
		IdleSettle: 15 * time.Second, IdleFor: time.Minute,
		Lengths: []int{10, 100, 1000, 3000}, LongSteps: 3000, Tenants: 1000, WideRuns: 5000, Workers: []int{1, 2, 4, 8}, FleetRuns: 5000,
		Retention: time.Second, Copies: []int{1_000_000},
		Retained: []int{10_000, 50_000, 200_000}, RetainedSettle: 5*time.Minute + 10*time.Second, // runlogs.OpenRuns.Settle, and some
	}
}

func shortPlan() plan {
	return plan{
		Limit: 5 * time.Minute, Warmup: 256, Rounds: 1, Runs: 2000, Slots: 256, Submitters: 64,
		LatencyRuns: 200, CapacityRuns: 500, ModelDelay: 2 * time.Second,
		AdmissionSubmits: 2000, FirstEvents: 40, Watchers: 300, WatchersPerRun: 30,
		Backlog: 5000, FairRuns: 30, FairSlots: 64, FairDelay: 20 * time.Millisecond,
		IdleSettle: 5 * time.Second, IdleFor: 10 * time.Second,
		Lengths: []int{10, 100}, LongSteps: 200, Tenants: 50, WideRuns: 500, Workers: []int{1, 2}, FleetRuns: 500,
		Retention: time.Second / 2, Copies: []int{1000},
		Retained: []int{200, 1000},
	}
}

// Parts that can be measured alone.
const (
	partSubmit     = "submit"
	partFairness   = "fairness"
	partThroughput = "throughput"
	partLatency    = "latency"
	partCapacity   = "capacity"
	partAdmission  = "admission"
	partWhole      = "whole"
	partIdle       = "idle"
	partGrowth     = "growth"
	partLong       = "long"
	partWide       = "wide"
	partFleet      = "fleet"
	partRetention  = "retention"
	partMemory     = "memory"
)

func parts() []string {
	return []string{partThroughput, partLatency, partCapacity, partFairness, partSubmit, partAdmission, partWhole, partLong, partWide, partFleet, partRetention, partMemory, partGrowth, partIdle}
}

// errLimit is the cause when everything took too long.
var errLimit = errors.New("the time limit is over")

// measureParts measures one part, or all, and reports.
func measureParts(ctx context.Context, p plan, only, profile string, out io.Writer, env stage.Env) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.Limit, errLimit)
	defer cancel()
	dir, err := os.MkdirTemp("", "longshore-bench-")
	if err != nil {
		return fmt.Errorf("make temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	heap := env.KeepHeap(ctx, 0)
	defer func() { err = errors.Join(err, heap.Stop()) }()
	b := &bench{plan: p, dir: dir, profile: profile, report: &report{measure.NewReport(out)}, env: env}
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{
		{partThroughput, b.throughput},
		{partLatency, b.latency},
		{partCapacity, b.capacity},
		{partFairness, b.fairness},
		{partSubmit, b.submit},
		{partAdmission, b.admissionWork},
		{partWhole, b.whole},
		{partLong, b.long},
		{partWide, b.wide},
		{partFleet, b.fleet},
		{partRetention, b.retention},
		{partMemory, b.memory},
		{partGrowth, b.growth},
		{partIdle, b.idle},
	} {
		alone := part.name == partSubmit || part.name == partMemory || part.name == partIdle // the throughput has submits; the others take a while
		if only != "" && only != part.name || only == "" && alone {
			continue
		}
		if err := part.run(ctx); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = fmt.Errorf("%w: %w", cause, err)
			}
			return fmt.Errorf("measure %s: %w", part.name, err)
		}
		if err := b.report.Err(); err != nil {
			return err
		}
	}
	return b.report.Summary()
}

// bench is one run of the measurements.
type bench struct {
	plan    plan
	dir     string
	profile string // file for the worker's CPU profile; empty: none
	report  *report
	env     stage.Env
}
