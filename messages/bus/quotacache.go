package bus

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/longshore-run/longshore/messages"
)

// quotaTTL is how long a quota that was read counts as current, so that a task costs no request.
const quotaTTL = 2 * time.Second

// quotaCache holds the quotas that were read lately.
type quotaCache struct {
	reading singleflight.Group

	mu    sync.Mutex
	known map[messages.QuotaRef]knownQuota
	last  map[messages.QuotaRef]messages.Quota // the newest that could be read
	junk  map[messages.QuotaRef]uint64         // the newest revisions that could not
	found uint64                               // of those
}

type knownQuota struct {
	messages.Quota
	until time.Time
}

// Granted is what an operator granted, at most two seconds ago; nothing when nobody said anything.
func (b *Bus) Granted(ctx context.Context, of messages.QuotaRef) (messages.Quota, error) {
	c := &b.quotas
	c.mu.Lock()
	k, ok := c.known[of]
	c.mu.Unlock()
	if ok && time.Now().Before(k.until) {
		return k.Quota, nil
	}
	got, err, _ := c.reading.Do(of.String(), func() (any, error) {
		q, _, err := b.Quota(context.WithoutCancel(ctx), of)
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.known == nil || len(c.known) >= maxTenants {
			c.known = map[messages.QuotaRef]knownQuota{}
		}
		c.known[of] = knownQuota{q, time.Now().Add(quotaTTL)}
		return q, nil
	})
	if err != nil {
		return messages.Quota{}, err
	}
	q, _ := got.(messages.Quota)
	return q, nil
}

// drop forgets a quota that this process has changed.
func (c *quotaCache) drop(of messages.QuotaRef) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, of)
}

// saw remembers what could be read; the zero quota is not worth it.
func (c *quotaCache) saw(of messages.QuotaRef, q messages.Quota) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.junk, of)
	if q == (messages.Quota{}) {
		delete(c.last, of)
		return
	}
	if c.last == nil {
		c.last = map[messages.QuotaRef]messages.Quota{}
	}
	if _, ok := c.last[of]; ok || len(c.last) < maxQuotas {
		c.last[of] = q
	}
}

// insteadOf is what counts in the place of a quota that cannot be read. First: this revision was not met before.
func (c *quotaCache) insteadOf(of messages.QuotaRef, m stored) (q messages.Quota, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if first = c.junk[of] != m.seq; first {
		if c.junk == nil || len(c.junk) >= maxQuotas {
			c.junk = map[messages.QuotaRef]uint64{}
		}
		c.junk[of] = m.seq
		c.found++
	}
	if q, ok := c.last[of]; ok {
		return q, first
	}
	return messages.Quota{Paused: &messages.Pause{Reason: "what it was granted cannot be read", At: m.time}}, first
}

// UnreadableQuotas is how many quotas were met that cannot be read, each revision once.
func (b *Bus) UnreadableQuotas() uint64 {
	b.quotas.mu.Lock()
	defer b.quotas.mu.Unlock()
	return b.quotas.found
}
