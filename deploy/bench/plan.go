package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"
)

// plan says how much is measured.
type plan struct {
	Limit        time.Duration // of everything
	Warmup       int           // runs before the measurement
	Rounds       int           // of throughput and floor, in turn: what else the machine does hits both
	Runs         int           // of each round, of its floor, and of the submits
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
}

func fullPlan() plan {
	return plan{
		Limit: 5 * time.Minute, Warmup: 1000, Rounds: 3, Runs: 5000, Slots: 256, Submitters: 64,
		LatencyRuns: 1000, CapacityRuns: 5000, ModelDelay: 2 * time.Second,
		AdmissionSubmits: 3000, FirstEvents: 500, Watchers: 10_000, WatchersPerRun: 100,
		Backlog: 20_000, FairRuns: 200, FairSlots: 64, FairDelay: 20 * time.Millisecond,
	}
}

func shortPlan() plan {
	return plan{
		Limit: time.Minute, Warmup: 256, Rounds: 1, Runs: 2000, Slots: 256, Submitters: 64,
		LatencyRuns: 200, CapacityRuns: 500, ModelDelay: 2 * time.Second,
		AdmissionSubmits: 2000, FirstEvents: 40, Watchers: 300, WatchersPerRun: 30,
		Backlog: 5000, FairRuns: 30, FairSlots: 64, FairDelay: 20 * time.Millisecond,
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
)

func parts() []string {
	return []string{partThroughput, partLatency, partCapacity, partFairness, partSubmit, partAdmission}
}

// errLimit is the cause when everything took too long.
var errLimit = errors.New("the time limit is over")

// measure measures one part, or all, and reports.
func measure(ctx context.Context, p plan, only, profile string, out io.Writer, log *slog.Logger) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.Limit, errLimit)
	defer cancel()
	dir, err := os.MkdirTemp("", "longshore-bench-")
	if err != nil {
		return fmt.Errorf("make temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	heap := keepHeap(ctx, 0)
	defer func() { err = errors.Join(err, heap.stop()) }()
	b := &bench{plan: p, dir: dir, profile: profile, report: newReport(out), log: log}
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
	} {
		if only != "" && only != part.name || only == "" && part.name == partSubmit { // the throughput has submits
			continue
		}
		if err := part.run(ctx); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = fmt.Errorf("%w: %w", cause, err)
			}
			return fmt.Errorf("measure %s: %w", part.name, err)
		}
		if b.report.err != nil {
			return b.report.err
		}
	}
	return b.report.summary()
}

// bench is one run of the measurements.
type bench struct {
	plan    plan
	dir     string
	profile string // file for the worker's CPU profile; empty: none
	report  *report
	log     *slog.Logger
}
