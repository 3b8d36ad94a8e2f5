package main

import (
	"context"
	"errors"
	"time"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/deploy/bench/stage"
	"github.com/longshore-run/longshore/messages"
)

// together is what runs cost that workers work together.
type together struct {
	runs                      int
	took                      time.Duration // from the start of the workers to the last end
	work, dispatcher, servers float64       // seconds of CPU; servers with redis-server
	workMB                    float64       // peak of all workers
	traffic                   measure.Traffic
}

// crew is what works.
type crew struct {
	workers, slots int    // slots of each
	steps          int    // model calls of a run; 0: those of the workload
	profile        string // how the names of its profiles end; empty: there are none

	retain time.Duration                            // for how long the dispatcher keeps runs; 0: the default
	ended  func(*stage.Hall, *stage.Finishes) error // called when all runs have ended; nil: nothing
}

// together has runs worked in a fresh hall until the run index has them. Before the hall is closed it calls after, unless that is nil.
func (b *bench) together(ctx context.Context, c crew, tasks []messages.Task, after func(*stage.Hall) error) (t together, err error) {
	profile := ""
	if c.profile != "" {
		profile = measure.Suffixed(b.profile, c.profile)
	}
	open := func() (*stage.Hall, error) { return b.env.OpenHall(ctx, b.dir, profile) }
	if c.retain > 0 {
		open = func() (*stage.Hall, error) { return b.env.OpenHallThatForgets(ctx, b.dir, c.retain) }
	}
	h, err := open()
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	next := make(chan messages.Task, len(tasks))
	for _, task := range tasks {
		next <- task
	}
	submit := func(ctx context.Context) error {
		_, err := h.Client.Submit(ctx, <-next)
		return err
	}
	if _, err := stage.FillWith(ctx, len(tasks), b.plan.Submitters, submit); err != nil {
		return t, err
	}
	processes := []*measure.Process{h.Servers, h.Dispatcher}
	for range c.workers {
		cfg := h.Worker(c.slots)
		cfg.Steps, cfg.Profile = c.steps, profile
		p, err := measure.Spawn(ctx, stage.RoleWorker, cfg, nil)
		if err != nil {
			return t, err
		}
		defer func() { err = errors.Join(err, p.Stop()) }()
		processes = append(processes, p)
	}
	f, err := stage.WatchFinishes(ctx, h.Conn, len(tasks))
	if err != nil {
		return t, err
	}
	defer f.Stop()
	before, err := usages(processes)
	if err != nil {
		return t, err
	}
	begun := time.Now()
	for _, p := range processes[2:] {
		if err := p.Start(); err != nil {
			return t, err
		}
	}
	if err := f.Await(ctx, stage.RoleWorker); err != nil {
		return t, err
	}
	t.runs, t.took = len(tasks), f.At(len(tasks)).Sub(begun)
	if c.ended != nil {
		if err := c.ended(h, f); err != nil {
			return t, err
		}
	}
	if _, _, err := indexed(ctx, h); err != nil {
		return t, err
	}
	now, err := usages(processes)
	if err != nil {
		return t, err
	}
	for i := range processes {
		used := now[i].Minus(before[i])
		switch i {
		case 0:
			t.servers = used.CPUSeconds + used.RedisSeconds
		case 1:
			t.dispatcher = used.CPUSeconds
		default:
			t.work += used.CPUSeconds
			t.workMB += measure.Megabytes(used.PeakBytes)
		}
	}
	if t.traffic, err = measure.TrafficOf(ctx, h.Conn, stage.WorkerName); err != nil || after == nil {
		return t, err
	}
	return t, after(h)
}

// usages are what processes have used so far.
func usages(processes []*measure.Process) ([]measure.Usage, error) {
	out := make([]measure.Usage, len(processes))
	for i, p := range processes {
		var err error
		if out[i], err = p.Usage(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// cpu is that of all processes.
func (t *together) cpu() float64 { return t.work + t.dispatcher + t.servers }

// togetherLine are its fields, for each of n things that were done.
type togetherLine struct {
	Seconds       float64 `json:"seconds"`
	RunsPerSecond float64 `json:"runsPerSecond"`
	WorkMB        float64 `json:"workPeakResidentMb"`
	togetherCost
}

type togetherCost struct {
	WorkCPU       float64 `json:"workCpuMicros"`
	DispatcherCPU float64 `json:"dispatcherCpuMicros"`
	ServersCPU    float64 `json:"serversCpuMicros"`
	AllCPU        float64 `json:"allCpuMicros"`
	MessagesIn    float64 `json:"messagesToServer"`
	BytesIn       float64 `json:"bytesToServer"`
}

// line has the costs of one of n runs or steps.
func (t *together) line(n int) togetherLine {
	per := func(v float64) float64 { return measure.Rounded(v/float64(n), 1) }
	return togetherLine{
		Seconds: measure.Rounded(t.took.Seconds(), 3), RunsPerSecond: measure.Rounded(float64(t.runs)/t.took.Seconds(), 1), WorkMB: measure.Rounded(t.workMB, 1),
		togetherCost: togetherCost{
			WorkCPU: per(t.work * 1e6), DispatcherCPU: per(t.dispatcher * 1e6), ServersCPU: per(t.servers * 1e6), AllCPU: per(t.cpu() * 1e6),
			MessagesIn: per(float64(t.traffic.InMsgs)), BytesIn: per(float64(t.traffic.InBytes)),
		},
	}
}

// tasksOf makes tasks, for one tenant after the other.
func tasksOf(task messages.Task, n int, tenants ...string) []messages.Task {
	out := make([]messages.Task, n)
	for i := range out {
		out[i] = task
		if len(tenants) > 0 {
			out[i].Tenant = tenants[i%len(tenants)]
		}
	}
	return out
}
