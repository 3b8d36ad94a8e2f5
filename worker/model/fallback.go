package model

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// circuitWaits is how often a request waits for a circuit, each time up to maxWait. After that its run is told to
// park: nothing of it has been tried, so it need not fail.
const circuitWaits = 3

// call is one request on its way through its candidates.
type call struct {
	router *Router
	req    Request
	yield  func(Delta, error) bool
	tries  []try
	passed []string // why others were not asked
	left   int      // calls that may still be made
	dirty  bool     // text was yielded and not taken back
}

// try is a candidate and how it went.
type try struct {
	Candidate
	err  *Error // why it is out; nil: it may still be asked
	why  string // it is out without having been asked
	held *Error // why its circuit is open
}

func (c *call) run(ctx context.Context) {
	for waits := 0; ; waits++ {
		if c.pass(ctx) {
			return
		}
		wait := c.soonest()
		long := wait > maxWait
		if wait == 0 || waits == circuitWaits || long && !c.req.Patient {
			c.yield(Delta{}, c.verdict(wait))
			return
		}
		if err := sleep(ctx, min(wait, maxWait)); err != nil {
			c.yield(Delta{}, err)
			return
		}
	}
}

// pass asks every candidate that is not out, in order. It returns true when nothing more is to be yielded.
func (c *call) pass(ctx context.Context) (over bool) {
	for i := range c.tries {
		t := &c.tries[i]
		if t.err != nil || t.why != "" {
			continue
		}
		if c.left <= 0 {
			t.why = "no attempts were left"
			continue
		}
		err := c.ask(ctx, t)
		if err == nil {
			return true
		}
		failed, ok := errors.AsType[*Error](err)
		_, open := errors.AsType[openError](err)
		switch {
		case ok && open && ctx.Err() == nil:
			c.setback(i, failed)
			if t.held = failed; !failed.Retryable() { // waiting will not help
				t.err = failed
			}
		case !ok || ctx.Err() != nil:
			c.yield(Delta{}, err)
			return true
		case !fallsBack(failed):
			c.yield(Delta{}, c.of(t, failed))
			return true
		default:
			t.err = failed
			c.setback(i, failed)
			c.narrow(i, failed)
		}
	}
	return false
}

// stream is the call, with its retries.
func (c *call) stream(ctx context.Context, t *try) iter.Seq2[Delta, error] {
	retry := c.router.config.Retry
	if c.req.Retries != nil {
		retry.Retries = *c.req.Retries
	}
	if retry.Retries = min(retry.Retries, c.left-1); retry.Retries <= 0 {
		retry.Retries = -1
	}
	req := c.req
	req.Model, req.Models, req.Retries = t.Model, nil, nil // they count in retry
	req.MaxTokens, req.Format = t.Capabilities.output(req.MaxTokens), t.Capabilities.format(req.Format)
	if told := req.Setback; told != nil {
		req.Setback = func(r Retried) {
			r.Model = t.String()
			told(r)
		}
	}
	return NewRetry(guarded{c, t.Candidate}, retry).Stream(ctx, req)
}

// ask makes the call, with its retries. A nil error: a reply was yielded, or the consumer left.
func (c *call) ask(ctx context.Context, t *try) error {
	stale := c.dirty // by a candidate before this one
	for d, err := range c.stream(ctx, t) {
		if err != nil {
			return err
		}
		if stale && !d.Reset && !c.emit(Delta{Reset: true}) {
			return nil
		}
		stale = false
		if d.Reply != nil {
			named := *d.Reply
			named.Asked = t.Model
			d.Reply = &named
		}
		if !c.emit(d) || d.Reply != nil {
			return nil
		}
	}
	return nil // the consumer left
}

// setback reports a candidate that is skipped for another one.
func (c *call) setback(over int, failed *Error) {
	another := slices.ContainsFunc(c.tries[over+1:], func(t try) bool { return t.err == nil && t.why == "" })
	if another && c.req.Setback != nil {
		c.req.Setback(Retried{Model: c.tries[over].String(), Err: failed})
	}
}

func (c *call) emit(d Delta) bool {
	c.dirty = d.Shown() || c.dirty && !d.Reset
	return c.yield(d, nil)
}

// guarded is one candidate behind its circuit.
type guarded struct {
	call *call
	Candidate
}

// Stream implements Provider.
func (g guarded) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	deltas := g.call.router.byName[g.Endpoint].Provider.Stream(ctx, req)
	return func(yield func(Delta, error) bool) {
		circuits := g.call.router.circuits
		p, err := circuits.enter(g.key())
		if err != nil {
			yield(Delta{}, err)
			return
		}
		meter, began := &g.call.router.meter, time.Now()
		told := false
		defer func() {
			if !told { // a call that was given up tells nothing
				circuits.leave(p, false, nil)
			}
		}()
		g.call.left--
		for d, err := range deltas {
			if err != nil {
				told = true
				if ctx.Err() == nil { // else the call was given up
					meter.failed(g.key())
				}
				yield(Delta{}, circuits.failed(ctx, p, err))
				return
			}
			if d.Reply != nil && !d.Reply.Cached { // a cache knows nothing of the model's health
				told = true
				circuits.leave(p, true, nil)
				meter.answered(g.key(), time.Since(began))
			}
			if !yield(d, nil) || d.Reply != nil {
				return
			}
		}
		told = true
		meter.failed(g.key())
		yield(Delta{}, circuits.failed(ctx, p, &Error{Class: Truncated, Detail: "the stream ended without a reply"}))
	}
}

// fallsBack reports whether another model may do better with the same request.
func fallsBack(e *Error) bool {
	switch e.Class {
	case ContentFilter, ReplyTooLarge:
		return false
	case InvalidRequest:
		return missing(e)
	case RateLimited, Overloaded, Timeout, Network, Truncated, Auth, Quota, ContextLength, ModelOutput, NoProvider, Unknown:
		return true
	default:
		return false
	}
}

// missing reports whether an invalid request is one for a model that is not there.
func missing(e *Error) bool {
	const notFound = 404
	said := strings.ToLower(e.Detail)
	return e.Status == notFound || strings.Contains(said, "model") &&
		(strings.Contains(said, "not found") || strings.Contains(said, "not_found") || strings.Contains(said, "does not exist"))
}

// narrow takes candidates out that cannot do better than the one that failed.
func (c *call) narrow(failed int, e *Error) {
	if e.Class != ContextLength {
		return
	}
	window := c.tries[failed].Capabilities.ContextWindow
	for i := range c.tries {
		if t := &c.tries[i]; t.err == nil && t.why == "" && t.Capabilities.ContextWindow <= window {
			t.why = "its context window is not known to be larger"
		}
	}
}

// soonest is when a candidate that is only held back by its circuit may be asked; 0: there is none.
func (c *call) soonest() time.Duration {
	var wait time.Duration
	for i := range c.tries {
		t := &c.tries[i]
		if t.err != nil || t.why != "" {
			continue
		}
		open := max(c.router.circuits.open(t.key()), time.Millisecond) // it may have closed meanwhile
		if wait == 0 || open < wait {
			wait = open
		}
	}
	return wait
}

// verdict is the error of a request for which nothing is left: of its first candidate, or of the first that may do
// when it is asked later. The soonest time at which one may do is its RetryAfter. Of several, all are named.
func (c *call) verdict(wait time.Duration) error {
	if 0 < wait && wait <= maxWait { // waited for in vain
		wait = 2 * maxWait
	}
	var best *Error
	var from *try
	var after time.Duration
	told := c.passed
	for i := range c.tries {
		t := &c.tries[i]
		err := t.err
		switch {
		case t.why != "":
			told = append(told, t.String()+": "+t.why)
			continue
		case err == nil:
			held := *t.held
			held.RetryAfter = wait
			err = &held
		}
		told = append(told, t.String()+": "+brief(err))
		if best == nil || !best.Retryable() && err.Retryable() {
			best, from = err, t
		}
		if err.Retryable() && err.RetryAfter > 0 && (after == 0 || err.RetryAfter < after) {
			after = err.RetryAfter
		}
	}
	if best == nil {
		return &Error{Class: NoProvider, Detail: "no attempts were left"}
	}
	final := c.of(from, best)
	final.RetryAfter = after
	if len(told) > 1 {
		final.Hint = strings.TrimPrefix(final.Hint+"; no model did: "+strings.Join(told, "; "), "; ")
	}
	return final
}

// of is an error that says where it comes from, when it may come from several places.
func (c *call) of(t *try, e *Error) *Error {
	named := *e
	named.Provider = t.String()
	if len(c.router.byName) > 1 {
		named.Detail = strings.TrimSuffix(t.String()+": "+e.Detail, ": ")
	}
	return &named
}

// brief is an error without what the provider said.
func brief(e *Error) string {
	if e.Status == 0 {
		return string(e.Class)
	}
	return fmt.Sprintf("%s (HTTP %d)", e.Class, e.Status)
}
