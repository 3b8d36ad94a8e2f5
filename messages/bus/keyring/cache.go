package keyring

import (
	"sync"
	"time"
)

const (
	// How long a keyset is used before it is read again, and so how long a destroyed one may still be used.
	maxAge = time.Minute
	// How many tenants have their keyset cached; then the cache begins anew.
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
	keys *tenantKeys
	at   time.Time // before it was read
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
		c.tenants[tenant] = cached{e.keys, now}
		return nil
	}
}

// put keeps a keyset, unless a newer revision is cached.
func (c *cache) put(tenant string, t *tenantKeys, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tenants == nil || len(c.tenants) >= maxCached {
		c.tenants = map[string]cached{}
	}
	if e, ok := c.tenants[tenant]; !ok || t.seq >= e.keys.seq {
		c.tenants[tenant] = cached{t, at}
	}
}

// again reports whether a keyset that lacks a key is worth another look, and forgets it then.
func (c *cache) again(tenant string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.tenants[tenant]
	if ok && now.Sub(e.at) < retryEvery {
		return false
	}
	delete(c.tenants, tenant)
	return true
}

func (c *cache) forget(tenant string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tenants, tenant)
}
