package worker

import (
	"context"
	"sync"
	"time"
)

// linger is how long a busy worker waits for more slots to come free before it asks for messages again: one request
// for several messages instead of one each.
const linger = 2 * time.Millisecond

// slots counts the runs that are worked and the messages that are on request for the rest.
type slots struct {
	total   int
	changed chan struct{} // buffered: something came free

	mu        sync.Mutex
	used      int // may exceed total for a while: a suspect that proves itself moves in whether there is room or not
	requested int
}

func newSlots(n int) *slots { return &slots{total: n, changed: make(chan struct{}, 1)} }

// request waits until messages should be asked for and returns how many.
func (s *slots) request(ctx context.Context) (int, error) {
	lingered := false
	for {
		n, more := s.want(lingered)
		if n > 0 {
			return n, nil
		}
		var timer <-chan time.Time
		if more {
			t := time.NewTimer(linger)
			defer t.Stop()
			timer = t.C
		}
		select {
		case <-timer:
			lingered = true
		case <-s.changed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// want books and returns how many messages to ask for now; more says that waiting a moment is worth while.
func (s *slots) want(lingered bool) (n int, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := s.total - s.used - s.requested
	batch := max(1, s.total/4)
	switch {
	case free >= batch, free > 0 && lingered:
		s.requested += free
		return free, false
	case free > 0 && s.requested == 0:
		return 0, true
	default:
		return 0, false
	}
}

// arrived turns a request into a slot in use, which take hands out.
func (s *slots) arrived() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requested--
	s.used++
}

// cancelled takes requests back that brought nothing.
func (s *slots) cancelled(n int) {
	s.mu.Lock()
	s.requested -= n
	s.mu.Unlock()
	s.signal()
}

func (s *slots) signal() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *slots) busy() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// slot is the place of one message. It belongs to one goroutine.
type slot struct {
	s    *slots
	held bool
}

// take is the slot of a message that arrived.
func (s *slots) take() *slot { return &slot{s, true} }

// free gives the slot back; twice is harmless.
func (sl *slot) free() {
	if !sl.held {
		return
	}
	sl.held = false
	sl.s.mu.Lock()
	sl.s.used--
	sl.s.mu.Unlock()
	sl.s.signal()
}

// retake takes a slot again, whether there is room or not.
func (sl *slot) retake() {
	if sl.held {
		return
	}
	sl.held = true
	sl.s.mu.Lock()
	defer sl.s.mu.Unlock()
	sl.s.used++
}
