package memory

import (
	"sync"
	"time"
)

// maxFailures in a row open the circuit. One is no reason: a single slow answer happens.
const maxFailures = 3

// circuit keeps a dead Redis from slowing every step: after maxFailures in a row only one operation per probe
// interval is let through, until one succeeds.
type circuit struct {
	probe time.Duration

	mu       sync.Mutex // guards what follows
	failures int
	retryAt  time.Time // of the next probe; zero while the circuit is closed
}

func newCircuit(probe time.Duration) *circuit { return &circuit{probe: probe} }

// allow tells whether an operation may be tried. A true while the circuit is open makes the caller the probe; should
// it never report, the next interval has another.
func (c *circuit) allow() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.retryAt.IsZero() {
		return true
	}
	now := time.Now()
	if now.Before(c.retryAt) {
		return false
	}
	c.retryAt = now.Add(c.probe)
	return true
}

// fail tells whether this failure opened the circuit.
func (c *circuit) fail() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures++
	if c.failures < maxFailures || !c.retryAt.IsZero() {
		return false
	}
	c.retryAt = time.Now().Add(c.probe)
	return true
}

// succeed tells whether this success closed the circuit.
func (c *circuit) succeed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	wasOpen := !c.retryAt.IsZero()
	c.failures, c.retryAt = 0, time.Time{}
	return wasOpen
}

func (c *circuit) isUp() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.retryAt.IsZero()
}

// untilProbe is how long to wait until allow says yes.
func (c *circuit) untilProbe() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.retryAt.IsZero() {
		return 0
	}
	return max(0, time.Until(c.retryAt))
}
