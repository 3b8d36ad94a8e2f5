package api

import (
	"context"
	"net/http"
	"sync"

	"github.com/longshore-run/longshore/messages"
)

// maxQueue is how many calls of one tenant wait or run.
const maxQueue = 64

// turns lets one call of each tenant run at a time: calls of /run-lite share a workspace, and more of them would wait
// in the slots of workers. The zero value is ready.
type turns struct {
	mu      sync.Mutex
	waiting map[string]*callers
}

type callers struct {
	turn chan struct{} // holds one token
	in   int           // calls that wait or run
}

// enter waits for the turn until ctx ends, then with its cause. When too many wait, it is a problem with status 429.
func (t *turns) enter(ctx context.Context, tenant string) (leave func(), err error) {
	l, err := t.join(tenant)
	if err != nil {
		return nil, err
	}
	select {
	case <-l.turn:
		return func() {
			l.turn <- struct{}{}
			t.part(tenant)
		}, nil
	case <-ctx.Done():
		t.part(tenant)
		return nil, context.Cause(ctx)
	}
}

func (t *turns) join(tenant string) (*callers, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.waiting[tenant]
	switch {
	case l == nil:
		l = &callers{turn: make(chan struct{}, 1)}
		l.turn <- struct{}{}
		if t.waiting == nil {
			t.waiting = map[string]*callers{}
		}
		t.waiting[tenant] = l
	case l.in == maxQueue:
		p := problemf(http.StatusTooManyRequests, messages.CodeInternal, "too many calls wait for their turn: try again")
		p.Retryable = true
		return nil, p
	}
	l.in++
	return l, nil
}

func (t *turns) part(tenant string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.waiting[tenant]; l.in > 1 {
		l.in--
		return
	}
	delete(t.waiting, tenant)
}
