package bus

import (
	"sync"
	"sync/atomic"
	"time"
)

// An append holds up its run, an event holds up nobody. So events wait while many appends are on their way, but not for
// long: a watcher hardly sees it.
const (
	fewAppends = 16
	maxHold    = 500 * time.Millisecond
	lullEvery  = 2 * time.Millisecond
)

// lull sends the events that outboxes hold back, once there are few appends or they have been held long enough, and as
// fast as they are acknowledged.
type lull struct {
	acks    *acks
	appends atomic.Int64 // on their way

	mu      sync.Mutex
	waiting []holding // oldest first
	armed   bool      // somebody will look at them
}

// holding is an outbox that holds events back.
type holding struct {
	box   *outbox
	until time.Time
}

// busy reports whether events had better wait.
func (l *lull) busy() bool { return l.appends.Load() > fewAppends }

// hold looks after an outbox until what it holds back is sent.
func (l *lull) hold(o *outbox) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, holding{o, time.Now().Add(maxHold)})
	if !l.armed {
		l.armed = true
		l.look()
	}
}

// look lets what is held back go in a moment, and so on while there is any.
func (l *lull) look() { time.AfterFunc(lullEvery, l.release) }

// release lets go what it may. Who is not ready comes first the next time: nobody waits for him.
func (l *lull) release() {
	var later []holding
	for h, ok := l.next(); ok; h, ok = l.next() {
		if !h.box.release() {
			later = append(later, h)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(later) > 0 {
		l.waiting = append(later, l.waiting...)
	}
	if l.armed = len(l.waiting) > 0; l.armed {
		l.look()
	}
}

// next takes out an outbox whose time has come.
func (l *lull) next() (h holding, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 || l.acks.crowded() || l.busy() && time.Now().Before(l.waiting[0].until) {
		return holding{}, false
	}
	h = l.waiting[0]
	l.waiting[0] = holding{}
	l.waiting = l.waiting[1:]
	return h, true
}
