package fetch

import (
	"context"
	"time"

	"github.com/longshore-run/longshore/worker/memorylimit"
)

// linger is how long a busy worker waits for more slots to come free before it asks for messages again: one request
// for several messages instead of one each.
const linger = 2 * time.Millisecond

// slots counts the slots in use and the messages requested for the rest. Only the owner uses it.
type slots struct {
	total     int
	used      int       // may exceed total for a while: a run that leaves quarantine takes a slot even if none is free
	requested int       // messages requested and not received yet; written by want and take
	freed     time.Time // when the first of the free slots came free; written by free
	memory    *memorylimit.Budget
	isShut    bool // no message is requested, as if all slots were in use; written by Shut
}

// want reserves and returns the number of messages to request now; wait says when to call it again.
func (s *slots) want() (n int, wait time.Duration) {
	free := s.free() - s.requested
	if free <= 0 {
		return 0, 0
	}
	wait = linger - time.Since(s.freed) // slots that have been free for a while do not wait
	if free < max(1, s.total/4) && wait > 0 {
		return 0, wait
	}
	s.requested += free
	return free, 0
}

func (s *slots) full() bool { return s.free() <= 0 }

// free returns how many more messages may be in hand. There is a signal when it grows, by a slot that comes free or by memory.
func (s *slots) free() int {
	if s.isShut {
		return 0
	}
	return min(s.total-s.used, s.memory.Room(taskMemory))
}

// taskMemory is what a task takes that has just come, in bytes: one that is as large as may be, read and written to its log.
const taskMemory = 6 << 20

// Slot is the slot of one message.
type Slot struct {
	f    *Fetch
	held bool // of the owner: written by Free and retake
}

// Free gives the slot back. It is idempotent.
func (sl *Slot) Free() { sl.f.do(sl.free) }

func (sl *Slot) free() {
	if !sl.held {
		return
	}
	sl.held = false
	s := &sl.f.slots
	if s.used+s.requested >= s.total {
		s.freed = time.Now()
	}
	s.used--
	signal(sl.f.changed)
	signal(sl.f.freed)
}

// retake takes a slot again, even if none is free.
func (sl *Slot) retake() {
	if !sl.held {
		sl.held = true
		sl.f.slots.used++
	}
}

// request waits until messages should be requested and returns how many.
func (f *Fetch) request(ctx context.Context) (n int, err error) {
	for {
		var wait time.Duration
		f.do(func() { n, wait = f.slots.want() })
		if n > 0 {
			return n, nil
		}
		var lingered <-chan time.Time // never, without a free slot
		if wait > 0 {
			lingered = time.After(wait)
		}
		select {
		case <-lingered:
		case <-f.changed:
		case <-f.cfg.Memory.Roomy():
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// arrived turns a request into a slot in use.
func (f *Fetch) arrived() *Slot {
	f.do(func() {
		f.slots.requested--
		f.slots.used++
	})
	return &Slot{f, true}
}

// Shut closes all free slots, or opens them again.
func (f *Fetch) Shut(is bool) {
	f.do(func() {
		f.slots.isShut = is
		if is {
			f.endStanding()
		}
	})
	signal(f.changed)
}

// Grab takes a slot for a message from another worker, or returns nil if none is free.
func (f *Fetch) Grab() (slot *Slot) {
	f.do(func() {
		if !f.slots.full() {
			f.slots.used++
			slot = &Slot{f, true}
		}
	})
	return slot
}
