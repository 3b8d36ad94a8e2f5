package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/runlog"
)

// maxSweepErrors bounds the errors that are logged of a sweep.
const maxSweepErrors = 10

// sweep may take longer than the queue waits for a sign of life.
func (w *Worker) sweep(ctx context.Context, d *taskqueue.Delivery) error {
	if !w.sweeping.TryLock() {
		return nil // the one that continues will do
	}
	defer w.sweeping.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	var beating sync.WaitGroup
	defer beating.Wait()
	defer cancel()
	beating.Go(func() {
		ticker := time.NewTicker(w.beatEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				if err := d.Renew(ctx); err != nil && ctx.Err() == nil {
					w.cfg.Log.DebugContext(ctx, "heartbeat of a sweep", "err", err)
				}
			case <-ctx.Done():
				return
			}
		}
	})
	stop := context.AfterFunc(w.running, cancel) //nolint:contextcheck // a worker that stops leaves the rest to the next sweep
	defer stop()
	w.sweepRuns(ctx)
	return nil // the next one comes anyway
}

// sweepRuns repairs the runs that have not ended, or whose end was not told. Should it not be known which these are, it looks at every
// run that has a log.
func (w *Worker) sweepRuns(ctx context.Context) {
	var (
		repaired int
		failed   []error
	)
	open := &runlogs.OpenRuns{Logs: w.cfg.Logs, Keep: true, Look: func(ctx context.Context, run messages.Ref) (runlog.Swept, error) {
		s, err := w.cfg.Controller.SweepRun(ctx, run)
		if s.Repaired {
			repaired++
		}
		if err != nil && len(failed) < maxSweepErrors {
			failed = append(failed, err)
		}
		return s, err
	}}
	looked, err := open.Each(ctx)
	if w.running.Err() != nil {
		return // the worker stops, and leaves the rest to the next sweep
	}
	if err == nil {
		err = errors.Join(append(failed, w.cfg.Controller.SweepSemaphores(ctx))...)
	} else {
		w.cfg.Log.WarnContext(ctx, "it is not known which runs are open, so the sweep looks at all", "err", err)
		var more int
		more, err = w.cfg.Controller.Sweep(ctx, w.cfg.Logs.Runs(ctx))
		repaired += more
	}
	if looked.Missed > 0 {
		w.cfg.Log.WarnContext(ctx, "open runs were missing from the record of open runs", "count", looked.Missed)
	}
	if w.running.Err() != nil {
		return
	}
	if err != nil {
		w.cfg.Log.WarnContext(ctx, "sweep", "repaired", repaired, "err", err)
		return
	}
	w.cfg.Log.InfoContext(ctx, "swept", "looked", looked.Runs, "read", looked.Read, "repaired", repaired)
}
