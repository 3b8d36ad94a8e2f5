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

// cost is what runs cost.
type cost struct {
	span       time.Duration // from the end of the warm-up to the last run
	ended      int           // runs in that time
	runs       int           // all runs, the warm-up too: what follows is theirs
	work       measure.Usage // of the worker or the floor
	servers    measure.Usage
	traffic    measure.Traffic // of the connection of the worker or the floor
	peakMemory uint64
	redisName  string
	replicas   int
	partitions int
}

// cpuSeconds are those of all processes but the driver.
func (c cost) cpuSeconds() float64 {
	return c.work.CPUSeconds + c.servers.CPUSeconds + c.servers.RedisSeconds
}

func (c cost) rate() float64 { return float64(c.ended) / c.span.Seconds() }

// throughput measures many runs at once and then the floor of the same, each time on fresh servers, in rounds.
func (b *bench) throughput(ctx context.Context) error {
	var rounds []round
	for n := range b.plan.Rounds {
		profile := b.profile
		if n > 0 {
			profile = "" // one round is enough
		}
		ours, s, submits, err := b.throughputOurs(ctx, profile)
		if err != nil {
			return err
		}
		b.report.submit(b.plan.Warmup+b.plan.Runs, b.plan.Submitters, submits)
		b.report.throughput(b.plan, ours, s)
		floor, err := b.throughputFloor(ctx, s, profile)
		if err != nil {
			return fmt.Errorf("floor: %w", err)
		}
		rounds = append(rounds, round{ours, floor})
		b.report.floor(b.plan, rounds[n])
	}
	b.report.ratio(rounds)
	return nil
}

// round is a throughput and its floor.
type round struct{ ours, floor cost }

func (r round) ratio() float64 { return r.ours.rate() / r.floor.rate() }

// cpuRatio is what the ratio would be if both had the machine for themselves and used all of it.
func (r round) cpuRatio() float64 {
	return (r.floor.cpuSeconds() / float64(r.floor.runs)) / (r.ours.cpuSeconds() / float64(r.ours.runs))
}

func (b *bench) throughputOurs(ctx context.Context, profile string) (c cost, s stage.Shape, submits time.Duration, err error) {
	on, err := b.env.Open(ctx, b.dir, measure.Suffixed(profile, ".servers"))
	if err != nil {
		return c, s, 0, err
	}
	defer func() { err = errors.Join(err, on.Close()) }()
	if submits, err = on.Fill(ctx, b.plan.Warmup+b.plan.Runs, b.plan.Submitters); err != nil {
		return c, s, 0, err
	}
	setup := on.Worker(b.plan.Slots)
	setup.Profile = profile
	work, err := measure.Spawn(ctx, stage.RoleWorker, setup, nil)
	if err != nil {
		return c, s, 0, err
	}
	defer func() { err = errors.Join(err, work.Stop()) }()
	if c, err = b.watch(ctx, on, work, stage.WorkerName); err != nil {
		return c, s, 0, err
	}
	if s, err = b.sample(ctx, on); err != nil {
		return c, s, 0, err
	}
	s.States = float64(c.work.Written) / float64(c.runs)
	s.StateBytes = int(c.work.SaveBytes / max(1, c.work.Saves))
	return c, s, submits, nil
}

// sample has one more run worked, and reads its shape.
func (b *bench) sample(ctx context.Context, on *stage.Stage) (stage.Shape, error) {
	id, err := on.Client.Submit(ctx, stage.Task())
	if err != nil {
		return stage.Shape{}, err
	}
	result, err := on.Client.Wait(ctx, dispatcher.Run(id))
	if err != nil {
		return stage.Shape{}, err
	}
	if !result.Success || len(result.ModelCalls) != 3 || len(result.Actions) != 2 {
		return stage.Shape{}, fmt.Errorf("the run is not the workload: status %s, %d model calls, %d tool calls", result.Status, len(result.ModelCalls), len(result.Actions))
	}
	return stage.ShapeOf(ctx, on.Conn, dispatcher.Run(id))
}

func (b *bench) throughputFloor(ctx context.Context, s stage.Shape, profile string) (c cost, err error) {
	env := b.env
	env.Partitions = 1 // what the same costs undivided
	on, err := env.Open(ctx, b.dir, measure.Suffixed(profile, ".floor.servers"))
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, on.Close()) }()
	if _, err := on.Fill(ctx, b.plan.Warmup+b.plan.Runs, b.plan.Submitters); err != nil {
		return c, err
	}
	work, err := measure.Spawn(ctx, stage.RoleFloor, stage.FloorConfig{
		NATSURL: on.Ready.NATSURL, RedisURL: on.Ready.RedisURL, Slots: b.plan.Slots, Shape: s,
		Profile: measure.Suffixed(profile, ".floor"),
	}, nil)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, work.Stop()) }()
	return b.watch(ctx, on, work, stage.FloorName)
}

// reading is what the processes have used at a moment.
type reading struct {
	work, servers measure.Usage
	traffic       measure.Traffic
}

func read(ctx context.Context, on *stage.Stage, work *measure.Process, connection string) (r reading, err error) {
	if r.work, err = work.Usage(); err != nil {
		return r, err
	}
	if r.servers, err = on.Servers.Usage(); err != nil {
		return r, err
	}
	r.traffic, err = measure.TrafficOf(ctx, on.Conn, connection)
	return r, err
}

// watch starts the work on the tasks that wait, and measures it until the last run. The time is that after the
// warm-up; what is used is that of all runs, for only at the begin and the end no run is half done.
func (b *bench) watch(ctx context.Context, on *stage.Stage, work *measure.Process, connection string) (cost, error) {
	all := b.plan.Warmup + b.plan.Runs
	f, err := stage.WatchFinishes(ctx, on.Conn, all)
	if err != nil {
		return cost{}, err
	}
	defer f.Stop()
	from, err := read(ctx, on, work, connection)
	if err != nil {
		return cost{}, err
	}
	if err := work.Start(); err != nil {
		return cost{}, err
	}
	if err := f.Await(ctx, work.Role); err != nil {
		return cost{}, err
	}
	to, err := read(ctx, on, work, connection)
	if err != nil {
		return cost{}, err
	}
	return cost{
		span: f.At(all).Sub(f.At(b.plan.Warmup)), ended: b.plan.Runs, runs: all,
		work: to.work.Minus(from.work), servers: to.servers.Minus(from.servers), traffic: to.traffic.Minus(from.traffic),
		peakMemory: to.work.PeakBytes, redisName: on.Ready.Redis, replicas: max(1, on.Env.Replicas), partitions: max(1, on.Env.Partitions),
	}, nil
}
