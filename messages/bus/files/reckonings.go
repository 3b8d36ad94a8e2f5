package files

import (
	"sync"
	"time"
)

const (
	// How soon after a reckoning that made no room the next one of the tenant may begin: each reads what its runs have referred to lately.
	reckonEvery = 3 * time.Second
	// How long one may take before the next begins all the same.
	reckonLimit = time.Minute
	// For how many tenants that is remembered.
	maxReckoned = 1024
)

// reckonings are the tenants whose uploads are being reckoned, or were lately and in vain. The zero value is empty. Safe for concurrent use.
type reckonings struct {
	mu    sync.Mutex
	ended map[string]time.Time // of one that is under way: when it must have ended
}

// begin reports whether a reckoning of a tenant may begin. Then end must be called.
func (r *reckonings) begin(tenant string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, ok := r.ended[tenant]; ok && now.Sub(last) < reckonEvery {
		return false
	}
	if r.ended == nil || len(r.ended) >= maxReckoned {
		r.ended = map[string]time.Time{}
	}
	r.ended[tenant] = now.Add(reckonLimit)
	return true
}

// end notes that a reckoning has ended, and whether it made room.
func (r *reckonings) end(tenant string, room bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if room {
		delete(r.ended, tenant)
	} else if _, ok := r.ended[tenant]; ok {
		r.ended[tenant] = now
	}
}
