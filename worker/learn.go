package worker

import (
	"context"
	"errors"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/worker/runner"
)

// How long an errand waits that cannot be run yet: a quarter of its age, within these bounds, and not at all once it is too old.
const (
	leastLearnWait = 5 * time.Second
	mostLearnWait  = time.Hour
	learnShare     = 4
	maxLearnAge    = 14 * 24 * time.Hour
)

// learn lets long-term memory follow what a person thinks of a run. While the run has not ended, or memory does not answer, the errand is
// handed back, perhaps to another worker. It reports whether the errand is done.
func (w *Worker) learn(ctx context.Context, d *taskqueue.Delivery, run messages.Ref, rating *messages.Rating) (done bool) {
	if rating == nil || rating.At.IsZero() {
		w.refuse(ctx, d, &messages.FieldError{Field: "rating", Reason: "is missing"})
		return false
	}
	age := time.Since(d.Queued)
	err := w.cfg.Runner.Learn(ctx, run, *rating)
	switch {
	case err == nil:
		return true
	case age > maxLearnAge:
		w.cfg.Log.ErrorContext(ctx, "a rating is given up", "tenant", run.Tenant, "task_id", run.Run, "err", err)
		return true
	case !errors.Is(err, runner.ErrNotEnded):
		w.cfg.Log.WarnContext(ctx, "memory does not follow a rating yet", "tenant", run.Tenant, "task_id", run.Run, "err", strict.Clip(err.Error(), maxLearnError))
	}
	wait := min(max(age/learnShare, leastLearnWait), mostLearnWait)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ackTimeout)
	defer cancel()
	if err := d.Nak(ctx, wait); err != nil {
		w.cfg.Log.WarnContext(ctx, "hand an errand back", "err", err)
	}
	return false
}

const maxLearnError = 512 // bytes
