package runner

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/limits"
)

// errLate refuses a call whose permit is over before the call has begun.
var errLate = errors.New("the permit of the call is over")

// permit is that of a call which is being made. Any goroutine may use it.
type permit struct {
	rate  *limits.Rate
	rates []queue.Rate
	until atomic.Pointer[time.Time] // the call must begin before
}

// usePermit uses the permit of a call that is about to be made.
func (x *toolWork) usePermit(c messages.ToolCall, rates []queue.Rate) *permit {
	p := &permit{rate: &x.limits.Rate, rates: rates}
	p.until.Store(new(p.rate.Use(x.journal.state, c)))
	return p
}

// inTime returns errLate when the call must not begin now.
func (p *permit) inTime() error {
	if !p.rate.Now().Before(*p.until.Load()) {
		return errLate
	}
	return nil
}

// again is tools.Call.Again: a further attempt takes a permit of its own.
func (p *permit) again(ctx context.Context) bool {
	until, ok := p.rate.Again(ctx, p.rates)
	if ok {
		p.until.Store(&until)
	}
	return ok
}

// takePermits takes the permits that calls lack, or waits until one that is near is valid.
func (x *toolWork) takePermits(ctx context.Context, a *agent.TakePermits) (agent.Action, error) {
	wait, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	defer x.own.listen(abort)()
	defer x.journal.bound(abort)()
	var err error
	if len(a.Calls) > 0 {
		err = x.limits.Rate.Take(wait, x.journal.state, a.Calls)
	} else {
		err = x.untilPermit(wait, a.At)
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, errControl):
		return x.journal.replan(ctx)
	case err != nil:
		return nil, err
	}
	return x.journal.commit(ctx)
}

// untilPermit waits for a moment that is near.
func (x *toolWork) untilPermit(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(at.Sub(x.now()))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-x.r.drain:
		return ErrShutdown
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
