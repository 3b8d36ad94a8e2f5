package memory

import (
	"sync"

	"github.com/longshore-run/longshore/messages"
)

// change is what is to be written for one run: a removal, then a snapshot; one of them or both.
type change struct {
	run      messages.Ref
	remove   bool
	save     bool
	snapshot Snapshot // if save
	attempts int
}

// pending holds at most one change per run, oldest first. Changes that the writer has taken count until it is done
// with them, so the bounds hold for all memory that Save's callers have handed over.
type pending struct {
	maxCount, maxBytes int

	mu       sync.Mutex // guards what follows
	changes  map[messages.Ref]*change
	order    []messages.Ref // the keys of changes
	count    int
	bytes    int
	isClosed bool
}

func newPending(maxCount, maxBytes int) *pending {
	return &pending{maxCount: maxCount, maxBytes: maxBytes, changes: map[messages.Ref]*change{}}
}

// save is false when the bounds leave no room; an older snapshot that waits is then kept.
func (p *pending) save(run messages.Ref, s Snapshot) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.changes[run]
	if c != nil && c.save && c.snapshot.Seq >= s.Seq {
		return true
	}
	growth := len(s.Data)
	if c != nil {
		growth -= len(c.snapshot.Data)
	}
	if p.bytes+growth > p.maxBytes {
		return false
	}
	if c = p.get(run); c == nil {
		return false
	}
	p.bytes += growth
	c.save, c.snapshot, c.attempts = true, s, 0
	return true
}

// delete is false when the bounds leave no room.
func (p *pending) delete(run messages.Ref) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.get(run)
	if c == nil {
		return false
	}
	p.bytes -= len(c.snapshot.Data)
	*c = change{run: run, remove: true}
	return true
}

// get returns the run's change, a new one if there is none, or nil if no more may be added.
func (p *pending) get(run messages.Ref) *change {
	if p.isClosed {
		return nil
	}
	if c := p.changes[run]; c != nil {
		return c
	}
	if p.count >= p.maxCount {
		return nil
	}
	c := &change{run: run}
	p.changes[run] = c
	p.order = append(p.order, run)
	p.count++
	return c
}

// take removes the oldest changes: at least one if there is any, at most maxCount, of about maxBytes. Each must be
// given to done or putBack.
func (p *pending) take(maxCount, maxBytes int) []*change {
	p.mu.Lock()
	defer p.mu.Unlock()
	var taken []*change
	bytes := 0
	for len(p.order) > 0 && len(taken) < maxCount && (bytes == 0 || bytes < maxBytes) {
		c := p.changes[p.order[0]]
		delete(p.changes, c.run)
		p.order = p.order[1:]
		taken = append(taken, c)
		bytes += len(c.snapshot.Data)
	}
	return taken
}

// done forgets a taken change.
func (p *pending) done(c *change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget(c)
}

func (p *pending) forget(c *change) {
	p.count--
	p.bytes -= len(c.snapshot.Data)
}

// putBack has a taken change wait again, unless the run has a newer one by now.
func (p *pending) putBack(c *change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	newer := p.changes[c.run]
	if newer == nil {
		p.changes[c.run] = c
		p.order = append(p.order, c.run)
		return
	}
	newer.remove = newer.remove || c.remove
	p.forget(c)
}

// close refuses further changes and returns how many still waited.
func (p *pending) close() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := len(p.order)
	p.isClosed = true
	p.changes, p.order, p.count, p.bytes = nil, nil, 0, 0
	return left
}
