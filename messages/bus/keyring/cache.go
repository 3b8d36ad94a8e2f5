package keyring

import (
	"sync"
	"time"
)

const (
	// How long a keyset is used before it is read again, and so how long a destroyed one may still be used.
	maxAge = time.Minute
	// How many tenants have their keyset cached; a further one takes the place of any other.
	maxCached = 1024
	// How often at most a keyset is read again because a value has a key that it lacks.
	retryEvery = time.Second
)

// cache has the keysets that were read lately. The zero value is empty.
type cache struct {
	mu      sync.Mutex
	tenants map[string]cached
}

type cached struct {
	keys   *tenantKeys
	at     time.Time // before it was read
	lacked time.Time // when it was last read again for a key and still lacked it
}

// get is nil when the caller must read the keyset, and forget it if that fails. When one is due to be read again, the first caller
// is told so, and the others use it meanwhile.
func (c *cache) get(tenant string, now time.Time) *tenantKeys {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.tenants[tenant]
	switch {
	case !ok:
		return nil
	case now.Sub(e.at) < maxAge:
		return e.keys
	default:
		e.at = now
		c.tenants[tenant] = e
		return nil
	}
}

// put keeps a keyset, unless a newer revision is cached.
func (c *cache) put(tenant string, t *tenantKeys, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tenants == nil {
		c.tenants = map[string]cached{}
	}
	e, ok := c.tenants[tenant]
	if ok && t.seq < e.keys.seq {
		return
	}
	if !ok && len(c.tenants) >= maxCached {
		for other := range c.tenants {
			delete(c.tenants, other)
			break
		}
	}
	c.tenants[tenant] = cached{t, at, e.lacked}
}

// lacked reports whether a keyset was read again lately because of a key that it lacks.
func (c *cache) lacked(tenant string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.Sub(c.tenants[tenant].lacked) < retryEvery
}

// lacks notes that a keyset which was read again still lacks a key.
func (c *cache) lacks(tenant string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.tenants[tenant]; ok {
		e.lacked = now
		c.tenants[tenant] = e
	}
}

func (c *cache) forget(tenant string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tenants, tenant)
}
