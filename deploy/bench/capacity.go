package main

import (
	"context"
	"errors"
	"time"
)

// capacity measures many runs that wait for their models at the same time.
func (b *bench) capacity(ctx context.Context) (err error) {
	stage, err := b.openStage(ctx, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.close()) }()
	if _, err := stage.fill(ctx, b.plan.CapacityRuns, b.plan.Submitters); err != nil {
		return err
	}
	setup := stage.worker(b.plan.CapacityRuns)
	setup.Delay, setup.Profile = b.plan.ModelDelay, suffixed(b.profile, ".capacity")
	work, err := b.spawn(ctx, roleWorker, setup, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.stop()) }()
	f, err := watchFinishes(ctx, stage.nc, b.plan.CapacityRuns)
	if err != nil {
		return err
	}
	defer f.stop()
	begun := time.Now()
	if err := work.ask(opStart, nil, nil); err != nil {
		return err
	}
	if err := f.await(ctx, work.role); err != nil {
		return err
	}
	used, err := work.usage()
	if err != nil {
		return err
	}
	b.report.capacity(b.plan, f.at(b.plan.CapacityRuns).Sub(begun), used)
	return nil
}
