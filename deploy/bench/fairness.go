package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/deploy/bench/stage"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
)

// Tenants of the fairness, whose names have the same hash: before tenants had lanes of their own, both were in one.
const (
	tenantBusy  = "busy"
	tenantQuiet = "quiet7"
)

// fairness measures how long a tenant's single tasks wait for a worker while another tenant has a backlog.
func (b *bench) fairness(ctx context.Context) (err error) {
	on, err := b.env.Open(ctx, b.dir, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, on.Close()) }()
	if err := backlog(ctx, on, b.plan.Backlog, b.plan.Submitters); err != nil {
		return err
	}
	setup := on.Worker(b.plan.FairSlots)
	setup.Delay = b.plan.FairDelay
	work, err := measure.Spawn(ctx, stage.RoleWorker, setup, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.Stop()) }()
	if err := work.Start(); err != nil {
		return err
	}
	var waits []time.Duration
	for range b.plan.FairRuns {
		took, err := started(ctx, on)
		if err != nil {
			return err
		}
		waits = append(waits, took)
	}
	slices.Sort(waits)
	left, err := taskqueue.New(on.Bus).LaneList(ctx, control.LanesRequest{Tenant: tenantBusy})
	if err != nil {
		return err
	}
	queued := 0
	for _, l := range left.Lanes {
		queued += l.Queued
	}
	b.report.fairness(b.plan, waits, queued)
	return nil
}

// backlog submits the busy tenant's tasks.
func backlog(ctx context.Context, on *stage.Stage, tasks, submitters int) error {
	group, ctx := errgroup.WithContext(ctx)
	for n := range submitters {
		group.Go(func() error {
			for i := n; i < tasks; i += submitters {
				t := stage.Task()
				t.Tenant = tenantBusy
				if _, err := on.Client.Submit(ctx, t); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// started submits a task of the quiet tenant, waits for its end, and returns how long after the submit it was begun.
func started(ctx context.Context, on *stage.Stage) (time.Duration, error) {
	t := stage.Task()
	t.Tenant = tenantQuiet
	begun := time.Now()
	id, err := on.Client.Submit(ctx, t)
	if err != nil {
		return 0, err
	}
	var took time.Duration
	for e, err := range on.Client.Watch(ctx, messages.Ref{Tenant: tenantQuiet, Run: id}) {
		switch {
		case err != nil:
			return 0, err
		case e.Name() == messages.EventRunStarted:
			took = time.Since(begun)
		}
	}
	if took == 0 {
		return 0, fmt.Errorf("run %s never started", dispatcher.Run(id))
	}
	return took, nil
}
