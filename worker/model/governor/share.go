package governor

import (
	"context"
	"time"
)

// Without Redis each worker has buckets of its own, for its share of the limits.

const (
	minute    = time.Minute
	burst     = minute / 10 // as in the scripts
	busyWait  = 100 * time.Millisecond
	maxShares = 4096 // bounds the memory for pools that are no longer called
)

// owner of a bucket: a pool, or one tenant of it.
type owner struct {
	pool   pool
	tenant string
	own    bool // false: of all tenants
}

// bucket is what a worker knows of an owner while Redis is away.
type bucket struct {
	requests, tokens time.Time // full again
	inFlight         int
}

// quota is a worker's share of limits.
type quota struct{ rpm, tpm, inFlight int }

// part is a worker's share of a limit, at least 1.
func part(limit, workers int) int {
	if limit == 0 {
		return 0
	}
	return max(limit/workers, 1)
}

// shares are the owners that a call counts for, and their shares.
func (g *Governor) shares(c *call) ([2]owner, [2]quota) {
	n, l := int(g.workers.Load()), c.limits
	return [2]owner{{pool: c.caller.pool}, {c.caller.pool, c.caller.tenant, true}},
		[2]quota{
			{part(l.RPM, n), part(l.TPM, n), part(l.InFlight, n)},
			{part(l.TenantRPM, n), part(l.TenantTPM, n), part(l.TenantInFlight, n)},
		}
}

// askShare is ask for the worker alone. Tenants get turns because each of them has one caller at a time.
func (g *Governor) askShare(c *call) answer {
	if g.config.Redis == nil {
		g.sayAlone()
	}
	now := g.clock()
	owners, quotas := g.shares(c)
	g.mu.Lock()
	defer g.mu.Unlock()
	var out answer
	longer := func(d time.Duration, why string) {
		if d > out.wait {
			out.wait, out.why = d, why
		}
	}
	for i, q := range quotas {
		b := g.bucket(owners[i], now)
		longer(delay(b.requests, cost(1, q.rpm), now), "requests")
		longer(delay(b.tokens, cost(c.tokens, q.tpm), now), "tokens")
		if q.inFlight > 0 && b.inFlight >= q.inFlight {
			longer(busyWait, "calls")
		}
	}
	if out.wait > 0 {
		return out
	}
	for i, q := range quotas {
		b := g.bucket(owners[i], now)
		b.requests = later(b.requests, now).Add(cost(1, q.rpm))
		b.tokens = later(b.tokens, now).Add(cost(c.tokens, q.tpm))
		b.inFlight++
	}
	return answer{admitted: true}
}

// bucket returns the owner's, a full one if it is not known. The caller holds mu.
func (g *Governor) bucket(o owner, now time.Time) *bucket {
	b := g.share[o]
	if b == nil {
		g.forgetShares(now)
		b = &bucket{}
		g.share[o] = b
	}
	return b
}

// cost is the part of a minute that n take of a limit.
func cost(n int64, limit int) time.Duration {
	if limit == 0 {
		return 0
	}
	return time.Duration(float64(min(n, int64(limit))) * float64(minute) / float64(limit))
}

// delay is how long a bucket makes wait; not above 0 when it does not.
func delay(full time.Time, price time.Duration, now time.Time) time.Duration {
	if price == 0 {
		return 0
	}
	return later(full, now).Sub(now) - max(0, burst-price)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// settleShare ends a call that the share let through.
func (g *Governor) settleShare(_ context.Context, c *call, used int64) {
	now := g.clock()
	owners, quotas := g.shares(c)
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, q := range quotas {
		b := g.share[owners[i]]
		if b == nil {
			continue
		}
		b.inFlight--
		if q.tpm == 0 {
			continue
		}
		spent := float64(min(used, 2*int64(q.tpm))) * float64(minute) / float64(q.tpm)
		move := time.Duration(spent) - cost(c.tokens, q.tpm)
		if move > 0 {
			b.tokens = later(b.tokens, now)
		}
		b.tokens = b.tokens.Add(move)
	}
}

// forgetShares makes room. The caller holds mu.
func (g *Governor) forgetShares(now time.Time) {
	if len(g.share) < maxShares {
		return
	}
	for o, b := range g.share {
		if b.inFlight == 0 && !b.requests.After(now) && !b.tokens.After(now) {
			delete(g.share, o)
		}
	}
}

func (g *Governor) clock() time.Time {
	if g.config.Now != nil {
		return g.config.Now()
	}
	return time.Now()
}
