package bus

import (
	"context"
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

// lull sends the events that outboxes hold back, once there are few appends or they have been held long enough.
type lull struct {
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

// busy tells whether events had better wait.
func (l *lull) busy() bool { return l.appends.Load() > fewAppends }

// hold looks after an outbox until what it holds back is sent.
func (l *lull) hold(ctx context.Context, o *outbox) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, holding{o, time.Now().Add(maxHold)})
	if !l.armed {
		l.armed = true
		l.look(context.WithoutCancel(ctx))
	}
}

// look lets what is held back go in a moment, and so on while there is any.
func (l *lull) look(ctx context.Context) { time.AfterFunc(lullEvery, func() { l.release(ctx) }) }

func (l *lull) release(ctx context.Context) {
	for o := l.next(); o != nil; o = l.next() {
		if !o.release(ctx) {
			l.hold(ctx, o)
			break
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.armed = len(l.waiting) > 0; l.armed {
		l.look(ctx)
	}
}

// next is an outbox whose time has come.
func (l *lull) next() *outbox {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 || l.busy() && time.Now().Before(l.waiting[0].until) {
		return nil
	}
	o := l.waiting[0].box
	l.waiting[0] = holding{}
	l.waiting = l.waiting[1:]
	return o
}
