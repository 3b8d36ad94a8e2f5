package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Defaults of a BreakerConfig.
const (
	defaultFailures  = 5
	defaultFirstOpen = 5 * time.Second
	defaultMaxOpen   = 5 * time.Minute
	maxCircuits      = 1024            // agents name models: what they make up must not fill the memory
	probeWait        = 5 * time.Second // while another call tries whether the model answers again
)

// BreakerConfig says when calls to a model stop for a while.
type BreakerConfig struct {
	Failures int              // In a row that open a circuit. Default 5; negative: never.
	First    time.Duration    // How long it is open the first time; doubled each time in a row. Default 5 s.
	Longest  time.Duration    // Default 5 min; at once when the key is refused or its credit is used up.
	Now      func() time.Time // Default: the clock.
	Random   func() float64   // In [0, 1), for jitter; safe for concurrent use. Default: the runtime's.
}

// CircuitState is whether calls go through.
type CircuitState string

// Circuit states. A closed circuit lets all calls through, an open one none, a half-open one a single call, which
// decides.
const (
	CircuitClosed   CircuitState = "closed"
	CircuitOpen     CircuitState = "open"
	CircuitHalfOpen CircuitState = "half_open"
)

// Circuit is what is known about the failures of one model of one endpoint.
type Circuit struct {
	Endpoint, Model string
	State           CircuitState
	Failures        int // in a row
	Until           time.Time
	Last            Class // of the last failure
}

type circuitKey struct{ endpoint, model string }

// circuits keeps a circuit for every model that failed last. One that answers is forgotten. Safe for concurrent use.
type circuits struct {
	config BreakerConfig

	mu sync.Mutex
	m  map[circuitKey]*circuit
}

type circuit struct {
	failures int       // in a row
	opened   int       // in a row
	until    time.Time // zero: closed
	probing  bool      // the call of the half-open circuit goes on
	last     *Error
}

func newCircuits(c BreakerConfig) *circuits {
	if c.Failures == 0 {
		c.Failures = defaultFailures
	}
	c.First, c.Longest = cmp.Or(c.First, defaultFirstOpen), cmp.Or(c.Longest, defaultMaxOpen)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = rand.Float64
	}
	return &circuits{config: c, m: map[circuitKey]*circuit{}}
}

// openError refuses a call, or is the failure that opened a circuit: the same call need not be tried again soon.
type openError struct{ why *Error }

func (e openError) Error() string { return e.why.Error() }
func (e openError) Unwrap() error { return e.why }

// pass is the permission for one call.
type pass struct {
	key   circuitKey
	probe bool
}

// enter permits a call, which must be followed by leave, or says for how long it is not.
func (b *circuits) enter(key circuitKey) (pass, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.m[key]
	if c == nil || c.until.IsZero() {
		return pass{key: key}, nil
	}
	wait := c.until.Sub(b.config.Now())
	if wait <= 0 && !c.probing {
		c.probing = true
		return pass{key, true}, nil
	}
	refusal := *c.last
	refusal.RetryAfter = max(wait, probeWait)
	refusal.Detail = fmt.Sprintf("not called for now, after %d failures in a row, the last: %s", c.failures, c.last.Detail)
	return pass{}, openError{&refusal}
}

// leave tells how a call ended: the model answered, if only with a refusal, or it failed. Neither says nothing about it.
func (b *circuits) leave(p pass, answered bool, failed *Error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.m[p.key]
	if c != nil && p.probe {
		c.probing = false
	}
	switch {
	case answered:
		delete(b.m, p.key)
	case failed == nil:
	case c == nil:
		if len(b.m) >= maxCircuits && !b.forget() {
			return
		}
		c = &circuit{}
		b.m[p.key] = c
		b.fail(c, failed)
	case p.probe || c.until.IsZero():
		b.fail(c, failed)
	}
}

// failed is leave after an error, which it returns: as an openError if the circuit is open now.
func (b *circuits) failed(ctx context.Context, p pass, err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || ctx.Err() != nil || e.Class == RateLimited { // the last may come from a limit of our own before the model
		b.leave(p, false, nil)
		return err
	}
	if !ails(e) {
		b.leave(p, true, nil)
		return err
	}
	b.leave(p, false, e)
	if wait := b.open(p.key); wait > 0 {
		refusal := *e
		refusal.RetryAfter = wait
		return openError{&refusal}
	}
	return err
}

func (b *circuits) fail(c *circuit, e *Error) {
	c.failures++
	c.last = e
	if b.config.Failures < 0 || c.failures < b.config.Failures {
		return
	}
	open := b.config.Longest
	if e.Class != Auth && e.Class != Quota && c.opened < 20 { // beyond it, shifting would overflow
		open = min(b.config.First<<c.opened, open)
	}
	open = time.Duration(float64(open) * (0.75 + b.config.Random()/2))
	c.opened++
	c.until = b.config.Now().Add(max(open, min(e.RetryAfter, b.config.Longest)))
}

// forget drops a closed circuit, or one that has long been free to be tried.
func (b *circuits) forget() bool {
	now := b.config.Now()
	for key, c := range b.m {
		if c.until.IsZero() || !c.probing && now.Sub(c.until) > b.config.Longest {
			delete(b.m, key)
			return true
		}
	}
	return false
}

// open tells for how long a model is not to be called; 0: it may be.
func (b *circuits) open(key circuitKey) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.m[key]
	if c == nil || c.until.IsZero() {
		return 0
	}
	if wait := c.until.Sub(b.config.Now()); wait > 0 || !c.probing {
		return max(wait, 0)
	}
	return probeWait
}

// list is every circuit with a failure, sorted.
func (b *circuits) list() []Circuit {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.config.Now()
	out := make([]Circuit, 0, len(b.m))
	for key, c := range b.m {
		s := Circuit{key.endpoint, key.model, CircuitClosed, c.failures, c.until, c.last.Class}
		switch {
		case c.until.IsZero():
		case now.Before(c.until):
			s.State = CircuitOpen
		default:
			s.State = CircuitHalfOpen
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Circuit) int {
		return cmp.Or(cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.Model, b.Model))
	})
	return out
}

// ails tells whether an error says that the model or its endpoint does not work at the moment. The others are answers.
func ails(e *Error) bool {
	switch e.Class {
	case Overloaded, Timeout, Network, Truncated, Auth, Quota, Unknown:
		return true
	case RateLimited, InvalidRequest, ContextLength, ContentFilter, ModelOutput, ReplyTooLarge, NoProvider:
		return false
	default:
		return false
	}
}
