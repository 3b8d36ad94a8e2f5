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
	total    int
	changed  chan struct{} // buffered: something came free
	freedOne chan struct{} // buffered: a slot came free, for runs that wait for a worker like this one

	mu        sync.Mutex
	used      int // may exceed total for a while: a suspect that proves itself moves in whether there is room or not
	requested int
	freed     time.Time // when the first of the free slots came free
	isShut    bool      // no message is asked for, as if all slots were in use
}

func newSlots(n int) *slots {
	return &slots{total: n, changed: make(chan struct{}, 1), freedOne: make(chan struct{}, 1)}
}

// request waits until messages should be asked for and returns how many.
func (s *slots) request(ctx context.Context) (int, error) {
	for {
		n, wait := s.want()
		if n > 0 {
			return n, nil
		}
		var lingered <-chan time.Time // never, without a free slot
		if wait > 0 {
			lingered = time.After(wait)
		}
		select {
		case <-lingered:
		case <-s.changed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// want books and returns how many messages to ask for now; a wait says when to ask again.
func (s *slots) want() (n int, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	free := s.total - s.used - s.requested
	if free <= 0 || s.isShut {
		return 0, 0
	}
	wait = linger - time.Since(s.freed) // slots that have been free for long wait for nobody
	if free < max(1, s.total/4) && wait > 0 {
		return 0, wait
	}
	s.requested += free
	return free, 0
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

// full reports whether there is no slot for another message.
func (s *slots) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isShut || s.used >= s.total
}

// shut closes all slots that are free, or opens them again.
func (s *slots) shut(is bool) {
	s.mu.Lock()
	s.isShut = is
	s.mu.Unlock()
	s.signal()
}

// grab takes a slot for a message that comes from another worker; false: none is free.
func (s *slots) grab() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isShut || s.used >= s.total {
		return false
	}
	s.used++
	return true
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
	if sl.s.used+sl.s.requested >= sl.s.total {
		sl.s.freed = time.Now()
	}
	sl.s.used--
	sl.s.mu.Unlock()
	sl.s.signal()
	signal(sl.s.freedOne)
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
