package quotas

import (
	"strconv"
	"time"
)

// MaxQuotas and MaxGrantChanges bound the grants.
const (
	MaxQuotas       = maxQuotas
	MaxGrantChanges = maxGrantChanges
)

// HoldGrants holds n quotas that were never read.
func (qs *Quotas) HoldGrants(n int) {
	for i := range n {
		qs.grants.hold(tenantQuota("held" + strconv.Itoa(i)))
	}
}

// HeldGrants is how many quotas are held.
func (qs *Quotas) HeldGrants() int {
	qs.grants.mu.Lock()
	defer qs.grants.mu.Unlock()
	return len(qs.grants.of)
}

// ForgetLook makes the next Granted look for changes, as if two seconds had gone by.
func (qs *Quotas) ForgetLook() {
	qs.grants.mu.Lock()
	defer qs.grants.mu.Unlock()
	qs.grants.until = time.Time{}
}
