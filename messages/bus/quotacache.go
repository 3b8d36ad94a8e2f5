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
