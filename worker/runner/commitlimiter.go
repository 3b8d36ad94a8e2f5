package runner

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// atOnce is how many runs of a worker may be between two waits at the same time. It keeps all cores and the message
// store busy, and is far less than a worker may have slots.
const atOnce = 128

// commitLimiter lets a bounded number of runs commit at once, those first whose step has taken longest. When
// thousands of runs hear from their models at the same time, each then has its next call under way after its own few
// appends, and not after the first append of all others.
type commitLimiter struct {
	mu      sync.Mutex
	inside  int
	waiting byAge
}

// waiter is a run that waits for its turn.
type waiter struct {
	since time.Time
	turn  chan struct{} // closed when it is its turn
	at    int           // in the heap; -1 when it has left it
}

// enter waits for a turn, until ctx ends.
func (t *commitLimiter) enter(ctx context.Context, since time.Time) error {
	t.mu.Lock()
	if t.inside < atOnce {
		t.inside++
		t.mu.Unlock()
		return nil
	}
	w := &waiter{since: since, turn: make(chan struct{})}
	heap.Push(&t.waiting, w)
	t.mu.Unlock()
	select {
	case <-w.turn:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.at < 0 {
		t.next() // it was let in meanwhile
	} else {
		heap.Remove(&t.waiting, w.at)
	}
	return context.Cause(ctx)
}

func (t *commitLimiter) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next()
}

// next hands a permit on.
func (t *commitLimiter) next() {
	if len(t.waiting) == 0 {
		t.inside--
		return
	}
	if w, ok := heap.Pop(&t.waiting).(*waiter); ok {
		close(w.turn)
	}
}

// byAge is a heap of waiters, the oldest first.
type byAge []*waiter

func (l *byAge) Len() int           { return len(*l) }
func (l *byAge) Less(i, j int) bool { return (*l)[i].since.Before((*l)[j].since) }
func (l *byAge) Push(w any)         { w.(*waiter).at = len(*l); *l = append(*l, w.(*waiter)) } //nolint:forcetypeassert // ours
func (l *byAge) Swap(i, j int) {
	q := *l
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = i, j
}

func (l *byAge) Pop() any {
	n := len(*l) - 1
	w := (*l)[n]
	(*l)[n] = nil
	*l, w.at = (*l)[:n], -1
	return w
}
