package tools

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// Waits between attempts of a tool that is no Retrier, when its agent asks for retries.
const (
	firstWait = 500 * time.Millisecond
	mostWait  = 10 * time.Second
)

// attempts is the key of Meta that says how often a call was made, when it was made more than once.
const attempts = "attempts"

// RetryPolicy is what an operator says of a tool in place of the tool itself. An agent may ask for fewer retries, and not for more.
type RetryPolicy struct {
	Retries *int              `json:"retries,omitempty"` // after the first attempt, 0 to 10; default the tool's, and agents are not bound
	First   messages.Duration `json:"first,omitzero"`    // wait before the first retry, up to 1m; default the tool's
	Most    messages.Duration `json:"most,omitzero"`     // a wait is never longer, up to 10m; default the tool's
}

// Limits of a RetryPolicy.
const (
	mostRetries   = 10
	mostFirstWait = time.Minute
	mostMostWait  = 10 * time.Minute
)

// Check returns a *messages.FieldError about the policy that stands at a field.
func (p *RetryPolicy) Check(field string) error {
	wrong := func(sub, reason string) error { return &messages.FieldError{Field: field + "." + sub, Reason: reason} }
	switch {
	case p.Retries != nil && (*p.Retries < 0 || *p.Retries > mostRetries):
		return wrong("retries", fmt.Sprintf("must be 0 to %d", mostRetries))
	case p.First < 0 || time.Duration(p.First) > mostFirstWait:
		return wrong("first", "must be up to 1m")
	case p.Most < 0 || time.Duration(p.Most) > mostMostWait:
		return wrong("most", "must be up to 10m")
	case p.Most > 0 && p.Most < p.First:
		return wrong("most", "must not be shorter than first")
	}
	return nil
}

// retryOf is how a call is made again: as the tool says, unless the operator or the run's agent says otherwise.
func (s *Set) retryOf(m *member, c Call) Retry {
	r, operator := m.retry, s.Retries[m.spec.Name]
	r.First = cmp.Or(time.Duration(operator.First), r.First, firstWait)
	r.Most = max(cmp.Or(time.Duration(operator.Most), r.Most, mostWait), time.Duration(operator.First))
	if operator.Retries != nil {
		r.Retries = *operator.Retries
	}
	if c.Retries != nil {
		r.Retries = *c.Retries
		if operator.Retries != nil {
			r.Retries = min(r.Retries, *operator.Retries)
		}
	}
	return r
}

// retried makes a call until it is answered otherwise than by a Transient failure, or its retries are used up, or ctx ends,
// which keeps the last answer; a wait that would last longer than ctx is not begun. Each attempt has the same key, and none
// begins before c.Again and c.Begin have let it.
func (s *Set) retried(ctx context.Context, m *member, c Call) (Result, error) {
	policy := s.retryOf(m, c)
	wait := policy.First
	for n := 1; ; n++ {
		if n > 1 {
			m.retries.Add(1)
		}
		r, err := s.guarded(ctx, m, c)
		if n > 1 && err == nil && r.Park == nil {
			if r.Meta == nil {
				r.Meta = map[string]any{}
			}
			r.Meta[attempts] = n
		}
		if err != nil || !r.IsError || !r.Transient || n > policy.Retries {
			return r, err
		}
		pause := max(min(wait, policy.Most), r.RetryAfter)
		if end, ok := ctx.Deadline(); ok && time.Until(end) <= pause {
			return r, nil
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
			wait *= 2
		case <-ctx.Done():
			timer.Stop()
			return r, nil
		}
		if c.Again != nil && !c.Again(ctx) {
			return r, nil
		}
		if c.Begin != nil {
			if err := c.Begin(); err != nil {
				return Result{}, err
			}
		}
	}
}
