package governor

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Run says that this worker lives, counts the others, renews the leases of calls in flight, and asks for Redis when it
// is away, until ctx ends. Call it once. Without it nothing but leases of long calls is lost: they expire.
func (g *Governor) Run(ctx context.Context) error {
	if g.config.Redis == nil {
		<-ctx.Done()
		return nil
	}
	defer g.sayGoodbye(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-g.down:
			timer.Reset(g.config.Probe)
			continue
		case <-timer.C:
		}
		next := heartbeat
		if g.beat(ctx) != nil || g.renew(ctx) != nil {
			next = g.config.Probe
		}
		timer.Reset(next)
	}
}

func (g *Governor) beat(ctx context.Context) error {
	return g.do(ctx, func(ctx context.Context) error {
		n, err := beatScript.Run(ctx, g.config.Redis, []string{g.workersKey()},
			g.now(), g.config.Worker, micros(3*heartbeat), keyTTL.Milliseconds()).Int64()
		if err != nil {
			return fmt.Errorf("count workers: %w", err)
		}
		g.workers.Store(min(max(n, 1), 1<<20))
		return nil
	})
}

// sayGoodbye leaves the limits to the others at once.
func (g *Governor) sayGoodbye(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.config.Timeout)
	defer cancel()
	_ = g.do(ctx, func(ctx context.Context) error {
		return g.config.Redis.ZRem(ctx, g.workersKey(), g.config.Worker).Err()
	})
}

func (g *Governor) renew(ctx context.Context) error {
	g.mu.Lock()
	var calls []*call
	for l := range g.live {
		calls = append(calls, l.call)
	}
	g.mu.Unlock()
	var errs []error
	for _, c := range calls {
		k := g.keys(c.caller)
		errs = append(errs, g.do(ctx, func(ctx context.Context) error {
			return renewScript.Run(ctx, g.config.Redis, []string{k[1], k[3]},
				g.now(), c.lease, micros(g.config.Lease), keyTTL.Milliseconds()).Err()
		}))
	}
	return errors.Join(errs...)
}
