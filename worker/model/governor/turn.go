package governor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/longshore-run/longshore/worker/model"
)

// call is one call that wants to be let through.
type call struct {
	caller caller
	lease  string
	limits Limits
	tokens int64 // the estimate
}

// queue holds one tenant's calls to one pool in this worker, in order of arrival. Only the first asks Redis for a permit.
type queue struct {
	first chan struct{} // holds one
	users int           // guarded by Governor.mu
}

// grant is a permit that was taken. It ends once, with done.
type grant struct {
	call *call
	done func(used int64)
}

// admit waits for a permit, up to MaxWait. The error is an *model.Error of class RateLimited that says when to try
// again, or the cause of ctx.
func (g *Governor) admit(ctx context.Context, c *call) (*grant, error) {
	began := time.Now()
	give := time.NewTimer(max(g.config.MaxWait, 0))
	defer give.Stop()
	waited := false
	l := g.enter(c.caller)
	defer g.exit(c.caller)
	select {
	case l.first <- struct{}{}:
	default:
		waited = true
		if g.config.MaxWait < 0 {
			return nil, g.refuse(c, answer{wait: time.Second, why: "turn"})
		}
		select {
		case l.first <- struct{}{}:
		case <-give.C:
			g.waitNanos.Add(since(began))
			return nil, g.refuse(c, answer{wait: g.config.MaxWait, why: "turn"})
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	defer func() { <-l.first }()
	stands := false // in the fleet's queue
	defer func() {
		if stands {
			g.leave(ctx, c.caller)
		}
	}()
	for ; ; waited = true {
		freed := g.freedNow()
		grant, a, inLine, err := g.tryOnce(ctx, c)
		stands = inLine
		switch {
		case err != nil:
			return nil, err
		case grant != nil:
			g.admitted.Add(1)
			if waited {
				g.waited.Add(1)
				g.waitNanos.Add(since(began))
			}
			return grant, nil
		case a.full || a.wait > g.config.MaxWait-time.Since(began):
			g.waitNanos.Add(since(began))
			return nil, g.refuse(c, a)
		}
		if err := pause(ctx, min(max(a.wait, time.Millisecond), recheck), freed); err != nil {
			return nil, err
		}
	}
}

func since(t time.Time) uint64 { return uint64(max(time.Since(t), 0)) }

// tryOnce asks the fleet, or the worker's share when there is no Redis. It reports whether the tenant may stand in the
// fleet's queue now.
func (g *Governor) tryOnce(ctx context.Context, c *call) (_ *grant, _ answer, inLine bool, _ error) {
	a, err := g.ask(ctx, c)
	if ctx.Err() != nil {
		if errors.Is(err, errDown) {
			return nil, a, false, context.Cause(ctx)
		}
		if err != nil || a.admitted { // the answer may be lost, and the permit taken
			g.settle(ctx, c, 0)
		}
		return nil, a, true, context.Cause(ctx)
	}
	settle := g.settle
	if inLine = err == nil; err != nil {
		a, settle = g.askShare(c), g.settleShare
	}
	if !a.admitted {
		return nil, a, inLine && !a.full && a.why != "tenant", nil
	}
	out := &grant{call: c}
	if inLine {
		g.mu.Lock()
		g.live[out] = struct{}{}
		g.mu.Unlock()
	}
	var once sync.Once
	out.done = func(used int64) {
		once.Do(func() {
			g.mu.Lock()
			delete(g.live, out)
			g.mu.Unlock()
			settle(ctx, c, used)
			g.tellFreed()
		})
	}
	return out, a, false, nil
}

// awayFor is more than the 30 s that retries and runs wait in a slot. A call that was refused here has had its wait: to
// try again from a slot would end with a failure that no provider asked for.
const awayFor = 31 * time.Second

// refuse is the error of a call that would wait too long. Its run is to ask another model, or to park.
func (g *Governor) refuse(c *call, a answer) error {
	g.refused.Add(1)
	what := map[string]string{ //nolint:gosec // tokens are not secrets here
		"requests": "requests per minute", "tokens": "tokens per minute", "calls": "calls in flight",
		"tenant": "what one tenant may use", "turn": "turns, which others wait for too", "line": "tenants that may wait",
	}[a.why]
	name := c.caller.pool.provider
	if m := c.caller.pool.model; m != "" {
		name += "/" + m
	}
	return &model.Error{
		Class:      model.RateLimited,
		Detail:     fmt.Sprintf("our own limit for %s is reached: %s", name, what),
		Hint:       "wait, or raise the limits of this provider",
		RetryAfter: max(a.wait, awayFor).Round(time.Millisecond),
	}
}

// pause waits for the time, or until a call ended here.
func pause(ctx context.Context, d time.Duration, freed <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-freed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g *Governor) freedNow() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.freed
}

func (g *Governor) tellFreed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.freed)
	g.freed = make(chan struct{})
}

// enter returns the queue of a caller, which stays until as many have left.
func (g *Governor) enter(at caller) *queue {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.queues[at]
	if l == nil {
		l = &queue{first: make(chan struct{}, 1)}
		g.queues[at] = l
	}
	l.users++
	return l
}

func (g *Governor) exit(at caller) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l := g.queues[at]; l != nil {
		if l.users--; l.users == 0 {
			delete(g.queues, at)
		}
	}
}
