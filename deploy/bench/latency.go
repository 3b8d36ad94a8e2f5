package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

// latencyWarmup is how many runs come before those that are measured.
const latencyWarmup = 100

// latency measures one run alone, again and again: over TCP, and embedded.
func (b *bench) latency(ctx context.Context) error {
	for _, way := range []struct {
		name string
		run  func(context.Context) (latencies, error)
	}{{"tcp", b.latencyTCP}, {"embedded", b.latencyEmbedded}} {
		l, err := way.run(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", way.name, err)
		}
		b.report.latency(way.name, l)
	}
	return nil
}

func (b *bench) latencyTCP(ctx context.Context) (l latencies, err error) {
	stage, err := b.openStage(ctx, "")
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, stage.close()) }()
	work, err := b.spawn(ctx, roleWorker, stage.worker(b.plan.Slots), nil)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, work.stop()) }()
	if err := work.ask(opStart, nil, nil); err != nil {
		return l, err
	}
	return b.alone(ctx, stage)
}

// latencyEmbedded has everything in this process.
func (b *bench) latencyEmbedded(ctx context.Context) (l latencies, err error) {
	servers, err := embedded.Start(ctx, embedded.Config{
		Dir: filepath.Join(b.dir, "embedded"), NATSAddr: embedded.NoListen, Log: b.log,
	})
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, servers.Stop()) }()
	opts, err := bus.Options(bus.ConnConfig{Name: driverName, Log: b.log})
	if err != nil {
		return l, err
	}
	stage := &stage{}
	if stage.nc, err = servers.Conn(opts...); err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, stage.close()) }()
	if err := stage.dispatch(ctx, b.log); err != nil {
		return l, err
	}
	nc, err := servers.Conn(opts...)
	if err != nil {
		return l, err
	}
	defer nc.Close()
	w, err := newWorker(ctx, nc, workerConfig{
		RedisURL: servers.RedisURL, Dir: filepath.Join(b.dir, "files"), Slots: b.plan.Slots,
	}, b.log)
	if err != nil {
		return l, err
	}
	work := runInBackground(ctx, w.run)
	defer func() { err = errors.Join(err, work.stop()) }()
	return b.alone(ctx, stage)
}

// latencies are the times of runs alone, sorted.
type latencies struct {
	finished []time.Duration // from the submit to the run_finished event, with its result, at a subscriber
	result   []time.Duration // from the submit to the return of the client's Wait
}

// alone runs one task after the other: first with a subscriber that stands, then as a backend does that knows nothing
// but the client.
func (b *bench) alone(ctx context.Context, stage *stage) (l latencies, err error) {
	l.finished, err = b.series(ctx, stage.subscribed)
	if err != nil {
		return l, err
	}
	l.result, err = b.series(ctx, stage.waited)
	return l, err
}

func (b *bench) series(ctx context.Context, once func(context.Context) error) ([]time.Duration, error) {
	return seriesOf(ctx, latencyWarmup, b.plan.LatencyRuns, once)
}

// seriesOf is how long something takes, again and again, sorted; what comes first does not count.
func seriesOf(ctx context.Context, warmup, n int, once func(context.Context) error) ([]time.Duration, error) {
	var out []time.Duration
	for i := range warmup + n {
		begun := time.Now()
		if err := once(ctx); err != nil {
			return nil, err
		}
		if i >= warmup {
			out = append(out, time.Since(begun))
		}
	}
	slices.Sort(out)
	return out, nil
}

// subscribed submits a task whose events a plain subscription is open for.
func (s *stage) subscribed(ctx context.Context) error {
	t := task()
	t.ID = messages.NewID(time.Now())
	sub, err := s.nc.SubscribeSync(dispatcher.Run(t.ID).EventSubject(messages.EventRunFinished))
	if err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only when the connection is gone
	if _, err := s.client.Submit(ctx, t); err != nil {
		return err
	}
	if _, err := sub.NextMsgWithContext(ctx); err != nil {
		return fmt.Errorf("wait for the end of a run: %w", err)
	}
	return nil
}

// waited submits a task and waits for its result.
func (s *stage) waited(ctx context.Context) error {
	id, err := s.client.Submit(ctx, task())
	if err != nil {
		return err
	}
	_, err = s.client.Wait(ctx, dispatcher.Run(id))
	return err
}

func percentile(sorted []time.Duration, p float64) time.Duration {
	return sorted[min(len(sorted)-1, int(p*float64(len(sorted))))]
}
