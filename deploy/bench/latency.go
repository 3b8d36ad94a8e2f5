package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/deploy/bench/stage"
	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

const (
	// How many runs come before those that are measured.
	latencyWarmup = 100
	// How many runs are measured before it is the turn of the other: what else the machine does hits both.
	latencyTurn = 20
)

// latency measures one run alone, again and again, and by turns the floor of the same: over TCP, and embedded.
func (b *bench) latency(ctx context.Context) error {
	for _, way := range []struct {
		name string
		open func(context.Context) (*ground, error)
		most float64 // of the floor
	}{{"tcp", b.groundTCP, maxTCPRatio}, {"embedded", b.groundEmbedded, maxEmbedRatio}} {
		ours, floor, err := b.alone(ctx, way.open)
		if err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		b.report.latency(way.name, ours, floor, way.most)
	}
	return nil
}

// ground is a stage, and how a worker or the floor starts on it. What it started, its owner stops.
type ground struct {
	*stage.Stage
	work  func(context.Context) (stop func() error, err error)
	floor func(context.Context, stage.Shape) (stop func() error, err error)
	close func() error
}

func (b *bench) groundTCP(ctx context.Context) (*ground, error) {
	on, err := b.env.Open(ctx, b.dir, "")
	if err != nil {
		return nil, err
	}
	start := func(ctx context.Context, role string, cfg any) (func() error, error) {
		p, err := measure.Spawn(ctx, role, cfg, nil)
		if err != nil {
			return nil, err
		}
		if err := p.Start(); err != nil {
			return nil, errors.Join(err, p.Stop())
		}
		return p.Stop, nil
	}
	return &ground{
		Stage: on, close: on.Close,
		work: func(ctx context.Context) (func() error, error) {
			return start(ctx, stage.RoleWorker, on.Worker(b.plan.Slots))
		},
		floor: func(ctx context.Context, s stage.Shape) (func() error, error) {
			return start(ctx, stage.RoleFloor, stage.FloorConfig{NATSURL: on.Ready.NATSURL, Slots: b.plan.Slots, Shape: s})
		},
	}, nil
}

// groundEmbedded has everything in this process.
func (b *bench) groundEmbedded(ctx context.Context) (_ *ground, err error) {
	dir, err := os.MkdirTemp(b.dir, "embedded-")
	if err != nil {
		return nil, fmt.Errorf("make temporary folder: %w", err)
	}
	servers, err := embedded.Start(ctx, embedded.Config{Dir: filepath.Join(dir, "servers"), NATSAddr: embedded.NoListen, Log: b.env.Log})
	if err != nil {
		return nil, err
	}
	on := &stage.Stage{}
	g := &ground{Stage: on, close: func() error { return errors.Join(on.Close(), servers.Stop()) }}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	opts, err := bus.Options(bus.ConnConfig{Name: stage.DriverName, Log: b.env.Log})
	if err != nil {
		return nil, err
	}
	if on.Conn, err = servers.Conn(opts...); err != nil {
		return nil, err
	}
	if err := on.Dispatch(ctx, b.env); err != nil {
		return nil, err
	}
	g.work = func(ctx context.Context) (func() error, error) {
		nc, err := servers.Conn(opts...)
		if err != nil {
			return nil, err
		}
		w, err := b.env.NewWorker(ctx, nc, stage.WorkerConfig{RedisURL: servers.RedisURL, Dir: filepath.Join(dir, "files"), Slots: b.plan.Slots})
		if err != nil {
			nc.Close()
			return nil, err
		}
		return inBackground(ctx, w.Run, nc.Close), nil
	}
	g.floor = func(ctx context.Context, s stage.Shape) (func() error, error) {
		nc, err := servers.Conn(opts...)
		if err != nil {
			return nil, err
		}
		return inBackground(ctx, stage.NewFloor(nc, nil, b.plan.Slots, s).Run, nc.Close), nil
	}
	return g, nil
}

// inBackground runs f until it is stopped, and then does what remains.
func inBackground(ctx context.Context, f func(context.Context) error, then func()) (stop func() error) {
	running := measure.InBackground(ctx, f)
	return func() error {
		defer then()
		return running.Stop()
	}
}

// latencies are the times of runs alone, sorted.
type latencies struct {
	finished []time.Duration // from the submit to the run_finished event at a subscriber, which may be one that was refused
	result   []time.Duration // from the submit to the whole result at a caller that knows nothing but the client
}

// alone runs one task after the other, by turns with a worker and with the floor. Each has servers of its own.
func (b *bench) alone(ctx context.Context, open func(context.Context) (*ground, error)) (ours, floor latencies, err error) {
	on, err := open(ctx)
	if err != nil {
		return ours, floor, err
	}
	defer func() { err = errors.Join(err, on.close()) }()
	stop, err := on.work(ctx)
	if err != nil {
		return ours, floor, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	s, err := b.sample(ctx, on.Stage)
	if err != nil {
		return ours, floor, err
	}
	under, err := open(ctx)
	if err != nil {
		return ours, floor, fmt.Errorf("floor: %w", err)
	}
	defer func() { err = errors.Join(err, under.close()) }()
	rest, err := under.floor(ctx, s)
	if err != nil {
		return ours, floor, fmt.Errorf("floor: %w", err)
	}
	defer func() { err = errors.Join(err, rest()) }()
	client, err := stage.NewFloorClient(under.Conn)
	if err != nil {
		return ours, floor, fmt.Errorf("floor: %w", err)
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	turns := []struct {
		series *[]time.Duration
		once   func(context.Context) error
	}{
		{&ours.finished, func(ctx context.Context) error { return subscribed(ctx, on.Stage) }},
		{&floor.finished, func(ctx context.Context) error { return client.Hear(ctx, messages.NewID(time.Now())) }},
		{&ours.result, func(ctx context.Context) error { return waited(ctx, on.Stage) }},
		{&floor.result, func(ctx context.Context) error { return client.Wait(ctx, messages.NewID(time.Now())) }},
	}
	for at := 0; at < b.plan.LatencyRuns; at += latencyTurn {
		warmup := 0
		if at == 0 {
			warmup = latencyWarmup
		}
		for _, t := range turns {
			series, err := measure.SeriesOf(ctx, warmup, min(latencyTurn, b.plan.LatencyRuns-at), t.once)
			if err != nil {
				return ours, floor, err
			}
			*t.series = append(*t.series, series...)
		}
	}
	for _, t := range turns {
		slices.Sort(*t.series)
	}
	return ours, floor, nil
}

// subscribed submits a task whose events a plain subscription is open for.
func subscribed(ctx context.Context, on *stage.Stage) error {
	t := stage.Task()
	t.ID = messages.NewID(time.Now())
	sub, err := on.Conn.SubscribeSync(dispatcher.Run(t.ID).EventSubject(messages.EventRunFinished))
	if err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only when the connection is gone
	if _, err := on.Client.Submit(ctx, t); err != nil {
		return err
	}
	if _, err := sub.NextMsgWithContext(ctx); err != nil {
		return fmt.Errorf("wait for the end of a run: %w", err)
	}
	return nil
}

// waited submits a task and waits for its result.
func waited(ctx context.Context, on *stage.Stage) error {
	id, err := on.Client.Submit(ctx, stage.Task())
	if err != nil {
		return err
	}
	_, err = on.Client.Wait(ctx, dispatcher.Run(id))
	return err
}
