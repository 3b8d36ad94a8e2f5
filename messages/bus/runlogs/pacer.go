package runlogs

import (
	"sync"
	"sync/atomic"
	"time"
)

// An append holds up its run, an event does not. So events wait while many appends are on their way, but not for
// long: a watcher hardly sees it.
const (
	fewAppends = 16
	maxHold    = 500 * time.Millisecond
	paceEvery  = 2 * time.Millisecond
)

// pacer sends the events that outboxes hold back, once there are few appends or they have been held long enough, and as
// fast as they are acknowledged.
type pacer struct {
	flights *flights
	appends atomic.Int64 // on their way

	mu      sync.Mutex
	waiting []holding // oldest first
	armed   bool      // a timer is set
}

// holding is an outbox that holds events back.
type holding struct {
	box   *outbox
	until time.Time
}

// busy reports whether events had better wait.
func (p *pacer) busy() bool { return p.appends.Load() > fewAppends }

// hold takes care of an outbox until what it holds back is sent.
func (p *pacer) hold(o *outbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = append(p.waiting, holding{o, time.Now().Add(maxHold)})
	if !p.armed {
		p.armed = true
		p.look()
	}
}

// look calls release in a moment, which continues for as long as anything is held back.
func (p *pacer) look() { time.AfterFunc(paceEvery, p.release) }

// release sends what it may. An outbox that is not ready comes first the next time.
func (p *pacer) release() {
	var later []holding
	for h, ok := p.next(); ok; h, ok = p.next() {
		if !h.box.release() {
			later = append(later, h)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(later) > 0 {
		p.waiting = append(later, p.waiting...)
	}
	if p.armed = len(p.waiting) > 0; p.armed {
		p.look()
	}
}

// next takes out an outbox whose time has come.
func (p *pacer) next() (h holding, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 || p.flights.crowded() || p.busy() && time.Now().Before(p.waiting[0].until) {
		return holding{}, false
	}
	h = p.waiting[0]
	p.waiting[0] = holding{}
	p.waiting = p.waiting[1:]
	return h, true
}
