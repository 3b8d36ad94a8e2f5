package worker

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/worker/runner"
)

// grace is how long after a lost connection the owner of a run may be silent because it is still connecting again. Its
// tickets are all delivered anew at once when a server comes back.
const grace = 3 * time.Second

// errGrace means that a run is left to its owner, who is silent, because the server was away a moment ago.
var errGrace = errors.New("the run's owner does not answer yet: NATS was away a moment ago")

// weather knows when the connection was lost last.
type weather struct {
	mu         sync.Mutex
	reconnects uint64
	changed    time.Time
}

// quiet reports whether the connection has been there for a while.
func (w *Worker) quiet() bool {
	n := w.cfg.Bus.Conn().Stats().Reconnects
	w.weather.mu.Lock()
	defer w.weather.mu.Unlock()
	if n != w.weather.reconnects {
		w.weather.reconnects, w.weather.changed = n, time.Now()
	}
	return time.Since(w.weather.changed) >= grace
}

// keeps asks the owner of a claim whether it works the run of a delivery, and hands it the delivery if so.
func (w *Worker) keeps(ctx context.Context, d *taskqueue.Delivery, run messages.Ref, claim string) (bool, error) {
	life := runner.Claimant(claim)
	if life == "" || life == w.id { // it is not in hand here
		return false, nil
	}
	kept, err := d.HandOver(ctx, life, run, claim)
	switch {
	case errors.Is(err, taskqueue.ErrSilent) && !w.quiet():
		return false, errGrace
	case errors.Is(err, taskqueue.ErrSilent):
		return false, nil
	default:
		return kept, err
	}
}

// owner answers other workers. It is the worker, without these methods in its API.
type owner struct{ w *Worker }

var _ taskqueue.Owner = owner{}

// Works implements taskqueue.Owner.
func (o owner) Works(run messages.Ref, claim string, ticket uint64) bool {
	return o.w.held.of(run, ticket) != nil && o.w.cfg.Runner.Works(run, claim)
}

// Take implements taskqueue.Owner.
func (o owner) Take(run messages.Ref, d *taskqueue.Delivery) bool { return o.w.held.replace(run, d) }
