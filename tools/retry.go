package tools

import (
	"cmp"
	"context"
	"time"
)

// Waits between attempts of a tool that is no Retrier, when its agent asks for retries.
const (
	firstWait = 500 * time.Millisecond
	mostWait  = 10 * time.Second
)

// attempts is the key of Meta that says how often a call was made, when it was made more than once.
const attempts = "attempts"

// retried makes a call until it is answered otherwise than by a Transient failure, or its retries are used up, or ctx ends,
// which keeps the last answer; a wait that would last longer than ctx is not begun. Each attempt has the same key, and none
// begins before c.Again and c.Begin have let it.
func (s *Set) retried(ctx context.Context, m *member, c Call) (Result, error) {
	policy := m.retry
	if c.Retries != nil {
		policy.Retries = *c.Retries
	}
	wait, most := cmp.Or(policy.First, firstWait), cmp.Or(policy.Most, mostWait)
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
		pause := max(min(wait, most), r.RetryAfter)
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
