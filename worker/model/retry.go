package model

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"time"
)

// Defaults of a retry.
const (
	DefaultRetries = 3
	firstWait      = time.Second      // doubled each time
	maxWait        = 30 * time.Second // for longer waits the run is parked
)

// RetryConfig says how often and what to tell.
type RetryConfig struct {
	Retries int            // After the first attempt. Default 3; negative: none.
	OnRetry func(Retried)  // Called before each wait, for metrics; may be nil, must be quick and safe for concurrent use.
	Random  func() float64 // In [0, 1), for jitter; safe for concurrent use. Default: the runtime's.
}

// Retried is one failed attempt that is followed by another one, of the same model or, from a Router, of the next.
type Retried struct {
	Model   string        // of the request
	Attempt int           // the one that failed, from 1
	Err     *Error        // why
	Wait    time.Duration // before the next; 0: another model is asked at once
}

// Retry repeats a provider's failed calls. An *Error that is retryable is followed by another attempt after 1 s, 2 s,
// 4 s and so on up to 30 s, each made up to half shorter or longer by chance, and never shorter than the provider
// asked for; when it asked for more than 30 s the error is returned at once. When an attempt had yielded text or
// reasoning, a Delta with Reset comes before those of the next one. Nothing is repeated after a Reply.
type Retry struct {
	provider Provider
	config   RetryConfig
}

var _ Provider = (*Retry)(nil)

// NewRetry wraps p.
func NewRetry(p Provider, c RetryConfig) *Retry {
	if c.Retries == 0 {
		c.Retries = DefaultRetries
	}
	if c.Random == nil {
		c.Random = rand.Float64
	}
	return &Retry{p, c}
}

// Stream implements Provider.
func (r *Retry) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	retries := r.config.Retries
	if req.Retries != nil {
		retries = *req.Retries
	}
	return func(yield func(Delta, error) bool) {
		for attempt := 1; ; attempt++ {
			a := r.try(ctx, req, yield)
			if a.over {
				return
			}
			wait, again := r.wait(ctx, a.err, attempt, retries)
			if !again {
				yield(Delta{}, a.err)
				return
			}
			failed, _ := errors.AsType[*Error](a.err) // or there were no wait
			if r.config.OnRetry != nil {
				r.config.OnRetry(Retried{req.Model, attempt, failed, wait})
			}
			if req.Setback != nil {
				req.Setback(Retried{req.Model, attempt, failed, wait})
			}
			if err := sleep(ctx, wait); err != nil {
				yield(Delta{}, err)
				return
			}
			if a.text && !yield(Delta{Reset: true}, nil) {
				return
			}
		}
	}
}

// attempt is how one attempt went.
type attempt struct {
	over bool  // a reply was yielded, or the consumer left
	text bool  // a piece of a reply was yielded
	err  error // not yielded yet
}

func (r *Retry) try(ctx context.Context, req Request, yield func(Delta, error) bool) (a attempt) {
	for d, err := range r.provider.Stream(ctx, req) {
		if err != nil {
			a.err = err
			return a
		}
		a.text = d.Shown() || a.text && !d.Reset
		if !yield(d, nil) || d.Reply != nil {
			a.over = true
			return a
		}
	}
	a.err = &Error{Class: Truncated, Detail: "the stream ended without a reply"}
	return a
}

// wait is how long to wait for the attempt after the given one, if there is to be one.
func (r *Retry) wait(ctx context.Context, err error, attempt, retries int) (time.Duration, bool) {
	failed, ok := errors.AsType[*Error](err)
	if _, open := errors.AsType[openError](err); open { // the router knows better what to do meanwhile
		return 0, false
	}
	if !ok || ctx.Err() != nil || !failed.Retryable() || attempt > retries || failed.RetryAfter > maxWait {
		return 0, false
	}
	backoff := maxWait
	if n := attempt - 1; n < 5 { // 2^5 s is beyond the cap
		backoff = firstWait << n
	}
	jittered := time.Duration(float64(backoff) * (0.5 + r.config.Random()))
	return min(max(jittered, failed.RetryAfter), maxWait), true
}

// sleep returns ctx's cause when ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
