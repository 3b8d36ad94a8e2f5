package keyring

import (
	"fmt"
	"time"
)

// SetClock gives a keyring another clock.
func (k *Keyring) SetClock(now func() time.Time) { k.now = now }

// How long a keyset is cached, and of how many tenants.
const (
	MaxAge    = maxAge
	MaxCached = maxCached
)

// CachedOf returns how many of n tenants stay cached when all are looked up, and then half of them again.
func CachedOf(n int) (stay int) {
	var c cache
	now := time.Now()
	for i := range n + n/2 {
		c.put(fmt.Sprint("t", i%n), &tenantKeys{}, now)
	}
	for i := range n {
		if c.get(fmt.Sprint("t", i), now) != nil {
			stay++
		}
	}
	return stay
}
