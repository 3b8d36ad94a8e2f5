package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/deploy/bench/stage"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
)

// sweeps are what it costs to look for runs that are stuck.
type sweeps struct {
	Sweep     float64 `json:"sweepSeconds"`
	SweepCPU  float64 `json:"sweepCpuSeconds"` // of worker and servers
	Doctor    float64 `json:"doctorRunsSeconds"`
	DoctorCPU float64 `json:"doctorRunsCpuSeconds"` // of the command and the servers
}

// fresh looks for stuck runs while all of them have ended a moment ago, so that each is looked at.
func (g *grown) fresh(ctx context.Context, s *growthSize) error { return g.sweep(ctx, &s.sweeps) }

// settled looks for them when all but one ended long enough ago, before NATS was measured at rest, that a sweep is done with them. The sweeps before
// the one that is measured record that.
func (g *grown) settled(ctx context.Context) (s sweeps, err error) {
	var size growthSize
	size.Retained = g.runs + 1
	if err := g.worked(ctx, &size); err != nil { // what has settled is counted from the newest entry
		return s, err
	}
	if err := sweptUp(ctx, g.hall.Stage); err != nil { // one that may have begun before that run
		return s, err
	}
	if err := sweepOnce(ctx, g.hall.Stage, g.env); err != nil { // it records what has settled
		return s, fmt.Errorf("sweep: %w", err)
	}
	return s, g.sweep(ctx, &s)
}

// sweep asks the worker for a sweep, as a dispatcher does, and waits for its end; then it runs `longshore doctor runs`.
func (g *grown) sweep(ctx context.Context, s *sweeps) error {
	if err := sweptUp(ctx, g.hall.Stage); err != nil { // the one that the dispatcher asked for at its start: a worker does one at a time
		return err
	}
	took, cpu, err := g.spent(func() error { return sweepOnce(ctx, g.hall.Stage, g.env) })
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	s.Sweep, s.SweepCPU = took, measure.Rounded(cpu[0]+cpu[2], 2)
	return g.doctor(ctx, s)
}

func sweepOnce(ctx context.Context, on *stage.Stage, env stage.Env) error {
	house, err := bus.Open(ctx, on.Conn, bus.Config{Log: env.Log})
	if err != nil {
		return err
	}
	if err := taskqueue.NewSweeps(house).AskSweep(ctx); err != nil {
		return err
	}
	return sweptUp(ctx, on)
}

// sweptUp waits until no sweep is asked for or in progress: the errand is removed when it is done.
func sweptUp(ctx context.Context, on *stage.Stage) error {
	js, err := jetstream.New(on.Conn)
	if err != nil {
		return fmt.Errorf("wait for a sweep: %w", err)
	}
	tasks, err := js.Stream(ctx, bus.StreamTasks)
	if err != nil {
		return fmt.Errorf("wait for a sweep: %w", err)
	}
	return measure.Until(ctx, growthLook, func() (bool, error) {
		_, err := tasks.GetLastMsgForSubject(ctx, "lanes.*.*._.sweep") // as the stream stores it
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return true, nil
		}
		return false, err
	})
}

// doctor runs `longshore doctor runs`.
func (g *grown) doctor(ctx context.Context, s *sweeps) (err error) {
	p, err := measure.Spawn(ctx, stage.RoleDoctor, stage.DoctorConfig{NATSURL: g.hall.Ready.NATSURL}, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	before, err := p.Usage()
	if err != nil {
		return err
	}
	took, cpu, err := g.spent(p.Start)
	if err != nil {
		return err
	}
	after, err := p.Usage()
	s.Doctor, s.DoctorCPU = took, measure.Rounded(after.CPUSeconds-before.CPUSeconds+cpu[2], 2)
	return err
}
