package memorylimit

import (
	"context"
	"slices"
)

// Share is what one run holds. Its methods are for one goroutine at a time. A nil Share is not counted and never waits.
type Share struct {
	budget *Budget
	run    string
	held   int64 // guarded by budget.mu
}

// Try is Hold for one that does not wait: it reports false if it would have to, and then nothing has changed.
func (s *Share) Try(bytes int64) (bool, error) {
	if s == nil {
		return true, nil
	}
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case bytes <= s.held:
		b.set(s, bytes)
		b.released()
		return true, nil
	case bytes > b.share:
		return false, &ExceededError{Bytes: bytes, Share: b.share}
	case len(b.waiting) > 0 && s != b.senior, !b.fits(s, bytes):
		return false, nil
	}
	b.set(s, bytes)
	return true, nil
}

// Hold changes what the run holds to so many bytes. It never waits for less than it holds. For more it waits until there is room; when
// ctx ends before, the run holds what it held, and the error is the cause of ctx. An *ExceededError means that it is more than a run may
// hold.
func (s *Share) Hold(ctx context.Context, bytes int64) error {
	ok, err := s.Try(bytes)
	if ok || err != nil {
		return err
	}
	b := s.budget
	w := &waiter{share: s, bytes: bytes, turn: make(chan struct{})}
	b.mu.Lock()
	b.waiting, b.waits = append(b.waiting, w), b.waits+1
	b.released() // it may be the first that waits
	b.mu.Unlock()
	select {
	case <-w.turn:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.waiting, w)
	if i < 0 { // it had its turn meanwhile
		return nil
	}
	b.waiting = slices.Delete(b.waiting, i, i+1)
	b.released()
	return context.Cause(ctx)
}

// Close gives everything back. The Share must not be used afterwards.
func (s *Share) Close() {
	if s == nil {
		return
	}
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set(s, 0)
	if b.senior == s {
		b.senior = nil
	}
	b.released()
}
