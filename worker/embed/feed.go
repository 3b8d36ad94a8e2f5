package embed

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/runlog"
)

// feed hands out the events of one run, each once. It is the run's event stream and its only outbox.
type feed struct {
	mu    sync.Mutex
	subs  map[int]func(messages.Event)
	next  int
	last  uint64 // running number of the last event handed out
	seq   uint64 // of the last entry whose events were
	ended bool
	end   messages.Event // the last, once the run has ended
	moved chan struct{}  // closed at the next change of what is above; nil: nothing waits for it
}

var (
	_ runlog.Events = (*feed)(nil)
	_ runlog.Outbox = (*feed)(nil)
)

func (f *feed) on(g func(messages.Event)) (off func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := f.next
	f.next++
	if f.subs == nil {
		f.subs = map[int]func(messages.Event){}
	}
	f.subs[id] = g
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.subs, id)
	}
}

// Open implements runlog.Events.
func (f *feed) Open(messages.Ref) runlog.Outbox { return f }

// Ended implements runlog.Events.
func (f *feed) Ended(context.Context, messages.Ref) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended, nil
}

// Publish implements runlog.Outbox.
func (f *feed) Publish(_ context.Context, seq uint64, events iter.Seq[messages.Event]) {
	for e := range events {
		f.hand(e)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seq = max(f.seq, seq)
	f.tell()
}

// tell wakes those that wait for more. The caller holds mu.
func (f *feed) tell() {
	if f.moved != nil {
		close(f.moved)
		f.moved = nil
	}
}

// so tells how far the events are, and what is closed when there is more; end is nil before the run has ended.
func (f *feed) so() (seq uint64, end *messages.Event, more <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.moved == nil {
		f.moved = make(chan struct{})
	}
	if f.ended {
		end = &f.end
	}
	return f.seq, end, f.moved
}

// Through implements runlog.Outbox.
func (f *feed) Through() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seq
}

// Flush implements runlog.Outbox.
func (f *feed) Flush(context.Context) error { return nil }

// Finish implements runlog.Outbox.
func (f *feed) Finish(_ context.Context, e messages.Event) error {
	f.hand(e)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended, f.end = true, e
	f.tell()
	return nil
}

// hand hands an event to everyone, unless that was done.
func (f *feed) hand(e messages.Event) {
	f.mu.Lock()
	if e.Number() <= f.last {
		f.mu.Unlock()
		return
	}
	f.last = e.Number()
	var to []func(messages.Event)
	for _, id := range slices.Sorted(maps.Keys(f.subs)) {
		to = append(to, f.subs[id])
	}
	f.mu.Unlock()
	for _, g := range to {
		g(e)
	}
}
