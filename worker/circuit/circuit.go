// Package circuit keeps a server that does not work from slowing the operations that need it. Make a circuit with [New],
// call Enter before each operation, and exactly one of Succeed, Fail and Withdraw after it.
package circuit

import (
	"cmp"
	"sync"
	"time"
)

// defaultFailures is more than one, because a single slow answer happens.
const defaultFailures = 3

// Config says when a circuit opens, and for how long.
type Config struct {
	Failures int              // In a row that open it. Default 3; negative: never.
	First    time.Duration    // How long it is open the first time; doubled each time in a row.
	Longest  time.Duration    // Default First: it is open for the same time each time.
	Probing  time.Duration    // How long Wait is while an operation probes the server. Default First.
	Now      func() time.Time // Default: the clock.
	Random   func() float64   // In [0, 1), for jitter of up to a quarter; safe for concurrent use. Default: no jitter.
}

// State is whether operations go through.
type State string

// States. A closed circuit lets all operations through, an open one none, a half-open one a single operation, which
// decides.
const (
	Closed   State = "closed"
	Open     State = "open"
	HalfOpen State = "half_open"
)

// Circuit opens after several failures in a row. Once it has been open for its time, one operation at a time probes the
// server, until one succeeds. Safe for concurrent use.
type Circuit struct {
	config Config

	mu       sync.Mutex // guards what follows
	failures int        // in a row
	opened   int        // in a row
	until    time.Time  // zero while the circuit is closed
	probing  bool       // an operation probes the half-open circuit
}

// New returns a closed circuit.
func New(c Config) *Circuit {
	if c.Failures == 0 {
		c.Failures = defaultFailures
	}
	c.Longest, c.Probing = cmp.Or(c.Longest, c.First), cmp.Or(c.Probing, c.First)
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Circuit{config: c}
}

// Pass is the permission for one operation. The zero Pass is that of an operation which did not ask for one: it never
// counts as the probe.
type Pass struct{ probe bool }

// Enter permits an operation, or reports false.
func (c *Circuit) Enter() (Pass, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.until.IsZero():
		return Pass{}, true
	case c.probing || c.config.Now().Before(c.until):
		return Pass{}, false
	default:
		c.probing = true
		return Pass{probe: true}, true
	}
}

// Failure is what a failed operation says about how long to leave the server alone.
type Failure struct {
	Lasting bool          // It will not recover soon: open for Config.Longest at once.
	AtLeast time.Duration // What the server asked for; at most Config.Longest.
}

// Fail ends an operation that failed. It reports whether it opened the circuit, which was closed before. Failures of
// operations that began before the circuit opened do not count.
func (c *Circuit) Fail(p Pass, f Failure) (opened bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wasClosed := c.until.IsZero()
	if p.probe {
		c.probing = false
	} else if !wasClosed {
		return false
	}
	c.failures++
	if c.config.Failures < 0 || c.failures < c.config.Failures {
		return false
	}
	c.until = c.config.Now().Add(c.pause(f))
	c.opened++
	return wasClosed
}

// pause is how long the circuit is open now.
func (c *Circuit) pause(f Failure) time.Duration {
	open := c.config.Longest
	if !f.Lasting && c.opened < 20 { // beyond it, shifting would overflow
		open = min(c.config.First<<c.opened, open)
	}
	if c.config.Random != nil {
		open = time.Duration(float64(open) * (0.75 + c.config.Random()/2))
	}
	return max(open, min(f.AtLeast, c.config.Longest))
}

// Succeed ends an operation that the server answered. It reports whether it closed the circuit, which was open before.
func (c *Circuit) Succeed(p Pass) (closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	closed = !c.until.IsZero()
	c.failures, c.opened, c.until = 0, 0, time.Time{}
	if p.probe {
		c.probing = false
	}
	return closed
}

// Withdraw ends an operation that says nothing about the server, such as one whose caller gave up.
func (c *Circuit) Withdraw(p Pass) {
	if !p.probe {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.probing = false
}

// IsClosed reports whether all operations go through.
func (c *Circuit) IsClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.until.IsZero()
}

// Wait is how long it is worth waiting before the next Enter; 0 when it may permit the operation now.
func (c *Circuit) Wait() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until.IsZero() {
		return 0
	}
	if wait := c.until.Sub(c.config.Now()); wait > 0 || !c.probing {
		return max(wait, 0)
	}
	return c.config.Probing
}

// Status is a snapshot of a circuit.
type Status struct {
	State    State
	Failures int       // in a row
	Until    time.Time // when it was or is half-open; zero while it is closed
	Probing  bool      // an operation probes the server
}

// Status returns what the circuit knows now.
func (c *Circuit) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Status{Closed, c.failures, c.until, c.probing}
	switch {
	case c.until.IsZero():
	case c.config.Now().Before(c.until):
		s.State = Open
	default:
		s.State = HalfOpen
	}
	return s
}
