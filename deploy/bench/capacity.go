package main

import (
	"context"
	"errors"
	"time"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/deploy/bench/stage"
)

// capacity measures many runs that wait for their models at the same time.
func (b *bench) capacity(ctx context.Context) (err error) {
	on, err := b.env.Open(ctx, b.dir, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, on.Close()) }()
	if _, err := on.Fill(ctx, b.plan.CapacityRuns, b.plan.Submitters); err != nil {
		return err
	}
	setup := on.Worker(b.plan.CapacityRuns)
	setup.Delay, setup.Profile = b.plan.ModelDelay, measure.Suffixed(b.profile, ".capacity")
	work, err := measure.Spawn(ctx, stage.RoleWorker, setup, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Stop()) }()
	f, err := stage.WatchFinishes(ctx, on.Conn, b.plan.CapacityRuns)
	if err != nil {
		return err
	}
	defer f.Stop()
	begun := time.Now()
	if err := work.Start(); err != nil {
		return err
	}
	if err := f.Await(ctx, work.Role); err != nil {
		return err
	}
	used, err := work.Usage()
	if err != nil {
		return err
	}
	b.report.capacity(b.plan, f.At(b.plan.CapacityRuns).Sub(begun), used)
	return nil
}
