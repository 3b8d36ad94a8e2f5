// Package circuit keeps a server that does not answer from slowing everything that would like to ask it. Make one with
// [New], ask Allow before each operation and report with Fail or Succeed.
package circuit

import (
	"sync"
	"time"
)

// maxFailures in a row open the circuit. One is no reason: a single slow answer happens.
const maxFailures = 3

// Circuit opens after three failures in a row: then only one operation per probe interval is let through, until one
// succeeds. Safe for concurrent use.
type Circuit struct {
	probe time.Duration

	mu       sync.Mutex // guards what follows
	failures int
	retryAt  time.Time // of the next probe; zero while the circuit is closed
}

// New returns a closed circuit.
func New(probe time.Duration) *Circuit { return &Circuit{probe: probe} }

// Allow tells whether an operation may be tried. A true while the circuit is open makes the caller the probe; should
// it never report, the next interval has another.
func (c *Circuit) Allow() bool {
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

// Fail tells whether this failure opened the circuit.
func (c *Circuit) Fail() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures++
	if c.failures < maxFailures || !c.retryAt.IsZero() {
		return false
	}
	c.retryAt = time.Now().Add(c.probe)
	return true
}

// Succeed tells whether this success closed the circuit.
func (c *Circuit) Succeed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	wasOpen := !c.retryAt.IsZero()
	c.failures, c.retryAt = 0, time.Time{}
	return wasOpen
}

// IsUp tells whether the circuit is closed.
func (c *Circuit) IsUp() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.retryAt.IsZero()
}

// UntilProbe is how long to wait until Allow says yes.
func (c *Circuit) UntilProbe() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.retryAt.IsZero() {
		return 0
	}
	return max(0, time.Until(c.retryAt))
}
