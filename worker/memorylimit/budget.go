// Package memorylimit counts what the runs of a worker hold in memory, and lets those wait that would hold too much.
//
// A run has a [Share] of the [Budget]. Before it takes something into memory it says with [Share.Hold] how many bytes it will hold then
// at most, and afterwards how many it still holds. A run that fits continues at once. Others wait in the order in which they came.
//
// Runs that wait for each other do not block each other forever. A part of the budget, as large as the largest share, is set aside for
// one run at a time, the senior: the first of those that wait takes it, and then holds what it needs without waiting, up to its share. So
// there is always a run that can continue to its end. A run that asks for more than a share cannot be helped by waiting, and gets an
// [ExceededError].
package memorylimit

import (
	"fmt"
	"math"
	"sync"
)

// Budget is the bytes that the runs of a worker may hold together. Safe for concurrent use. A nil Budget has no limit.
type Budget struct {
	limit int64 // of all together
	share int64 // of one run; as much is set aside for the senior

	mu      sync.Mutex
	used    int64
	senior  *Share
	waiting []*waiter
	waits   uint64
	short   bool          // Room has said that there is none
	wanted  int64         // for how many bytes
	roomy   chan struct{} // buffered: there is room again
}

// waiter is a run that wants to hold more.
type waiter struct {
	share *Share
	bytes int64         // that it wants to hold in all
	turn  chan struct{} // closed when it does
}

const (
	shareOf  = 4        // of the limit, the part that one run may hold
	minShare = 64 << 20 // what a run may hold if that is not more than half of the limit
)

// New returns a budget of so many bytes.
func New(limit int64) *Budget {
	return &Budget{limit: limit, share: min(limit/2, max(limit/shareOf, minShare)), roomy: make(chan struct{}, 1)}
}

// Share returns how many bytes one run may hold.
func (b *Budget) Share() int64 { return b.share }

// Open adds a run that holds so many bytes already, which may be more than there is room for. Its name is for Waiting alone. Close the
// Share when the run is done with.
func (b *Budget) Open(run string, bytes int64) *Share {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used += bytes
	return &Share{budget: b, run: run, held: bytes}
}

// Stats is what a budget holds at a moment.
type Stats struct {
	Limit   int64  // bytes
	Used    int64  // bytes
	Waiting int    // runs
	Waits   uint64 // so far
}

// Stats returns those of this moment. A nil Budget has none.
func (b *Budget) Stats() Stats {
	if b == nil {
		return Stats{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return Stats{Limit: b.limit, Used: b.used, Waiting: len(b.waiting), Waits: b.waits}
}

// Waiting returns the names of runs that wait, the first so many. A nil Budget has none.
func (b *Budget) Waiting(most int) []string {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, w := range b.waiting[:min(most, len(b.waiting))] {
		out = append(out, w.share.run)
	}
	return out
}

// Room returns how many runs that hold so many bytes each could begin now, besides those that wait. After it has returned 0 there is a
// signal in Roomy as soon as it would return more. A nil Budget always has room.
func (b *Budget) Room(bytes int64) int {
	if b == nil {
		return math.MaxInt
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := (b.limit - b.share - b.used) / bytes; n > 0 && len(b.waiting) == 0 {
		return int(n)
	}
	b.short, b.wanted = true, bytes
	return 0
}

// Roomy receives a signal when there is room again. A nil Budget never sends one.
func (b *Budget) Roomy() <-chan struct{} {
	if b == nil {
		return nil
	}
	return b.roomy
}

// fits reports whether a run may hold so many bytes now. The caller holds the lock.
func (b *Budget) fits(s *Share, bytes int64) bool {
	return s == b.senior || b.used-s.held+bytes <= b.limit-b.share
}

// set notes what a run holds. The caller holds the lock.
func (b *Budget) set(s *Share, bytes int64) {
	b.used += bytes - s.held
	s.held = bytes
}

// released lets those continue for whom there is room now. The caller holds the lock.
func (b *Budget) released() {
	if b.senior != nil && b.used <= b.limit-b.share { // what is set aside is free again
		b.senior = nil
	}
	for len(b.waiting) > 0 {
		w := b.waiting[0]
		if !b.fits(w.share, w.bytes) {
			if b.senior != nil {
				break
			}
			b.senior = w.share
		}
		b.waiting = b.waiting[1:]
		b.set(w.share, w.bytes)
		close(w.turn)
	}
	if b.short && len(b.waiting) == 0 && b.limit-b.share-b.used >= b.wanted {
		b.short = false
		select {
		case b.roomy <- struct{}{}:
		default:
		}
	}
}

// ExceededError says that a run asked for more than a run may hold.
type ExceededError struct{ Bytes, Share int64 }

func (e *ExceededError) Error() string {
	return fmt.Sprintf("the run needs %d bytes of memory, more than the share of %d bytes that a run may have", e.Bytes, e.Share)
}
