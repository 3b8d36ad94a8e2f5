package auth

import (
	"net/netip"
	"sync"
	"time"
)

// Limits of wrong tokens from one address.
const (
	failuresAtOnce = 20
	failureEvery   = 3 * time.Second // one more is allowed
	maxRemotes     = 10_000
)

// Failures counts wrong tokens by the address that they come from. The zero value is ready. Its memory is bounded: when
// too many addresses are known, those that have calmed down are forgotten, and else all.
type Failures struct {
	mu      sync.Mutex
	remotes map[netip.Prefix]time.Time // when all its failures are forgiven
}

// Add counts a wrong token. It returns how long the address has to wait, 0 while it has not had too many.
func (f *Failures) Add(remote netip.Addr, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := network(remote)
	if _, known := f.remotes[at]; !known && len(f.remotes) >= maxRemotes {
		f.forget(now)
	}
	if f.remotes == nil {
		f.remotes = map[netip.Prefix]time.Time{}
	}
	until := f.remotes[at]
	if until.Before(now) {
		until = now
	}
	if most := now.Add(failuresAtOnce * failureEvery); until.Before(most) {
		until = until.Add(failureEvery)
		f.remotes[at] = until
	}
	return wait(until, now)
}

// Wait is how long an address has to wait, 0 while it has not had too many failures.
func (f *Failures) Wait(remote netip.Addr, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return wait(f.remotes[network(remote)], now)
}

func wait(until, now time.Time) time.Duration {
	if !until.After(now) { // without a failure it is so long ago that the difference would overflow
		return 0
	}
	return max(0, until.Sub(now)-(failuresAtOnce-1)*failureEvery)
}

func (f *Failures) forget(now time.Time) {
	for at, until := range f.remotes {
		if until.Before(now) {
			delete(f.remotes, at)
		}
	}
	if len(f.remotes) >= maxRemotes {
		f.remotes = nil
	}
}

// network is whom an address belongs to: of IPv6, one has a whole /64.
func network(a netip.Addr) netip.Prefix {
	bits := 32
	if a = a.Unmap().WithZone(""); a.Is6() {
		bits = 64
	}
	p, err := a.Prefix(bits)
	if err != nil { // no address: all of those are one
		return netip.Prefix{}
	}
	return p
}
