package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

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
	stage, err := b.openStage(ctx, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.close()) }()
	if err := stage.backlog(ctx, b.plan.Backlog, b.plan.Submitters); err != nil {
		return err
	}
	setup := stage.worker(b.plan.FairSlots)
	setup.Delay = b.plan.FairDelay
	work, err := b.spawn(ctx, roleWorker, setup, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, work.stop()) }()
	if err := work.ask(opStart, nil, nil); err != nil {
		return err
	}
	var waits []time.Duration
	for range b.plan.FairRuns {
		took, err := stage.started(ctx)
		if err != nil {
			return err
		}
		waits = append(waits, took)
	}
	slices.Sort(waits)
	left, err := taskqueue.New(stage.house).LaneList(ctx, control.LanesRequest{Tenant: tenantBusy})
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
func (s *stage) backlog(ctx context.Context, tasks, submitters int) error {
	group, ctx := errgroup.WithContext(ctx)
	for n := range submitters {
		group.Go(func() error {
			for i := n; i < tasks; i += submitters {
				t := task()
				t.Tenant = tenantBusy
				if _, err := s.client.Submit(ctx, t); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// started submits a task of the quiet tenant, waits for its end, and returns how long after the submit it was begun.
func (s *stage) started(ctx context.Context) (time.Duration, error) {
	t := task()
	t.Tenant = tenantQuiet
	begun := time.Now()
	id, err := s.client.Submit(ctx, t)
	if err != nil {
		return 0, err
	}
	var took time.Duration
	for e, err := range s.client.Watch(ctx, messages.Ref{Tenant: tenantQuiet, Run: id}) {
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
