package worker

import (
	"context"
	"errors"
	"sync"

	"github.com/longshore-run/longshore/worker/runner"
)

// errSuspectsFull means that too many runs wait for the suspect place.
var errSuspectsFull = errors.New("too many suspect runs wait")

// suspectPlace is where runs are tried, one at a time, that made no progress since their last claim: one of them may
// be what killed the worker. Those that wait have not claimed anything, so the next death costs them no attempt.
type suspectPlace struct {
	limit  int
	place  chan struct{} // holds one token
	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex
	waiting int
}

func newSuspectPlace(limit int) *suspectPlace {
	p := &suspectPlace{limit: limit, place: make(chan struct{}, 1), closed: make(chan struct{})}
	p.place <- struct{}{}
	return p
}

// enter waits for the place, without a slot meanwhile. Done gives it back and takes a slot again.
func (p *suspectPlace) enter(ctx context.Context, sl *slot) (done func(), err error) {
	p.mu.Lock()
	full := p.waiting >= p.limit
	if !full {
		p.waiting++
	}
	p.mu.Unlock()
	if full {
		return nil, errSuspectsFull
	}
	leave := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.waiting--
	}
	sl.free()
	select {
	case <-p.place:
		return func() {
			p.place <- struct{}{}
			leave()
			sl.retake()
		}, nil
	case <-p.closed:
		err = runner.ErrShutdown
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	leave()
	return nil, err
}

// close turns everybody away who waits.
func (p *suspectPlace) close() { p.once.Do(func() { close(p.closed) }) }

func (p *suspectPlace) len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting
}
