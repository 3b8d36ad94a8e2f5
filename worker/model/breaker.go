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

	"github.com/longshore-run/longshore/worker/circuit"
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
	Failures int            // In a row that open a circuit. Default 5; negative: never.
	First    time.Duration  // How long it is open the first time; doubled each time in a row. Default 5 s.
	Longest  time.Duration  // Default 5 min; at once when the key is refused or its credit is used up.
	Random   func() float64 // In [0, 1), for jitter; safe for concurrent use. Default: the runtime's.
}

// Circuit is what is known about the failures of one model of one endpoint.
type Circuit struct {
	Endpoint, Model string
	State           circuit.State
	Failures        int // in a row
	Until           time.Time
	Last            Class // of the last failure
}

type circuitKey struct{ endpoint, model string }

// circuits keeps a circuit for every model that failed last. One that answers is forgotten. Safe for concurrent use.
type circuits struct {
	config circuit.Config

	mu sync.Mutex
	m  map[circuitKey]*failing
}

// failing is a model whose last call failed.
type failing struct {
	*circuit.Circuit
	last *Error
}

func newCircuits(c BreakerConfig) *circuits {
	config := circuit.Config{
		Failures: cmp.Or(c.Failures, defaultFailures), First: cmp.Or(c.First, defaultFirstOpen),
		Longest: cmp.Or(c.Longest, defaultMaxOpen), Probing: probeWait, Now: time.Now, Random: c.Random,
	}
	if config.Random == nil {
		config.Random = rand.Float64
	}
	return &circuits{config: config, m: map[circuitKey]*failing{}}
}

// openError refuses a call, or is the failure that opened a circuit: the same call need not be tried again soon.
type openError struct{ why *Error }

func (e openError) Error() string { return e.why.Error() }
func (e openError) Unwrap() error { return e.why }

// pass is the permission for one call.
type pass struct {
	key circuitKey
	circuit.Pass
}

// enter permits a call, which must be followed by leave, or says for how long it is not.
func (b *circuits) enter(key circuitKey) (pass, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.m[key]
	if c == nil {
		return pass{key: key}, nil
	}
	p, ok := c.Enter()
	if ok {
		return pass{key, p}, nil
	}
	refusal := *c.last
	refusal.RetryAfter = max(c.Wait(), probeWait)
	after := "a failure"
	if n := c.Status().Failures; n > 1 {
		after = fmt.Sprintf("%d failures in a row, the last", n)
	}
	refusal.Detail = fmt.Sprintf("not called for now, after %s: %s", after, c.last.Detail)
	return pass{}, openError{&refusal}
}

// leave tells how a call ended: the model answered, if only with a refusal, or it failed. Neither says nothing about it.
func (b *circuits) leave(p pass, answered bool, failed *Error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.m[p.key]
	switch {
	case answered:
		delete(b.m, p.key)
	case failed == nil:
		if c != nil {
			c.Withdraw(p.Pass)
		}
	case c == nil && len(b.m) >= maxCircuits && !b.forget():
	default:
		if c == nil {
			c = &failing{Circuit: circuit.New(b.config)}
			b.m[p.key] = c
		}
		c.last = failed
		c.Fail(p.Pass, circuit.Failure{Lasting: failed.Class == Auth || failed.Class == Quota, AtLeast: failed.RetryAfter})
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

// forget drops a closed circuit, or one that has long been free to be tried.
func (b *circuits) forget() bool {
	now := b.config.Now()
	for key, c := range b.m {
		if s := c.Status(); s.State == circuit.Closed || !s.Probing && now.Sub(s.Until) > b.config.Longest {
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
	if c := b.m[key]; c != nil {
		return c.Wait()
	}
	return 0
}

// list is every circuit with a failure, sorted.
func (b *circuits) list() []Circuit {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]Circuit, 0, len(b.m))
	for key, c := range b.m {
		s := c.Status()
		out = append(out, Circuit{key.endpoint, key.model, s.State, s.Failures, s.Until, c.last.Class})
	}
	slices.SortFunc(out, func(a, b Circuit) int {
		return cmp.Or(cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.Model, b.Model))
	})
	return out
}

// ails reports whether an error says that the model or its endpoint does not work at the moment. The others are answers.
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
