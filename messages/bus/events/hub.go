package events

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

// Hub serves many watchers in one process with one subscription: a watcher reads what is stored of its run once, and
// gets what comes later from memory.
type Hub struct {
	from  *Store
	ready chan struct{} // closed once it follows: what is stored from then on is given

	mu       sync.Mutex
	watchers map[messages.Ref]map[*hubTail]struct{}
	over     error // why the hub has ended

	pending atomic.Uint64 // events that follow the one it had last
	stalls  atomic.Uint64
}

// hubRoom is how many new events wait for a watcher; one that is slower reads them from the stream again.
const hubRoom = 64

// NewHub returns a hub; it serves once Run does.
func (st *Store) NewHub() *Hub {
	return &Hub{from: st, ready: make(chan struct{}), watchers: map[messages.Ref]map[*hubTail]struct{}{}}
}

// Run follows all events until ctx ends. Watchers that are left then get ctx's cause.
func (h *Hub) Run(ctx context.Context) error {
	t := &bus.Tail{Bus: h.from.bus, Stream: bus.StreamEvents, Filter: bus.EveryEvent, Strict: true, Room: bus.FollowRoom}
	t.Start.DeliverPolicy = jetstream.DeliverNewPolicy
	defer t.Close()
	err := h.follow(ctx, t)
	h.end(err)
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("follow events: %w", err)
}

func (h *Hub) follow(ctx context.Context, t *bus.Tail) error {
	if err := t.Begin(ctx); err != nil {
		return err
	}
	close(h.ready)
	for {
		m, err := t.Next(ctx, time.Time{})
		if errors.Is(err, bus.ErrAhead) { // watchers know what they have had of the events that are there now
			t.Last, t.Start.DeliverPolicy = 0, jetstream.DeliverAllPolicy
			continue
		}
		if err != nil {
			return err
		}
		h.pending.Store(m.Pending)
		if run, ok := messages.RunOfEvent(m.Subject); ok {
			h.give(run, m)
		}
	}
}

func (h *Hub) give(run messages.Ref, m bus.TailMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers[run] {
		if w.stalled {
			continue
		}
		select {
		case w.in <- m:
		default:
			w.stalled = true
			h.stalls.Add(1)
			close(w.lagged)
		}
	}
}

func (h *Hub) end(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = err
	for _, ws := range h.watchers {
		for w := range ws {
			close(w.ended)
		}
	}
	clear(h.watchers)
}

// Watchers is how many there are.
func (h *Hub) Watchers() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, ws := range h.watchers {
		n += len(ws)
	}
	return n
}

// Pending is how many events were stored and not given to watchers yet, as of the last event that came.
func (h *Hub) Pending() uint64 { return h.pending.Load() }

// Stalls is how often a watcher was too slow and had to read from the stream again.
func (h *Hub) Stalls() uint64 { return h.stalls.Load() }

// Watch is Bus.Watch by way of the hub.
func (h *Hub) Watch(ctx context.Context, run messages.Ref) iter.Seq2[messages.Event, error] {
	return h.from.watch(ctx, run, defaultPatience, func() source { return h.join(run) })
}

func (h *Hub) join(run messages.Ref) *hubTail {
	w := &hubTail{
		hub: h, run: run, in: make(chan bus.TailMessage, hubRoom), lagged: make(chan struct{}), ended: make(chan struct{}),
		behind: true,
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over != nil {
		close(w.ended)
		return w
	}
	if h.watchers[run] == nil {
		h.watchers[run] = map[*hubTail]struct{}{}
	}
	h.watchers[run][w] = struct{}{}
	return w
}

// hubTail is the source of one watcher. It belongs to one goroutine, but for what the hub gives it.
type hubTail struct {
	hub     *Hub
	run     messages.Ref
	in      chan bus.TailMessage
	ended   chan struct{}
	lagged  chan struct{} // closed when the hub gives no more, because in was full
	stalled bool          // likewise; the hub's lock holds for it and lagged

	behind bool // what is stored after last is to be read
	last   uint64
	ready  []bus.TailMessage // was read and is to be given
}

// hubPage is how many stored events a watcher holds at most.
const hubPage = 256

// catchUp lets the hub give again. What it did not give meanwhile is to be read.
func (w *hubTail) catchUp() {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	if w.stalled {
		w.stalled, w.lagged = false, make(chan struct{})
	}
	w.behind = true
}

func (w *hubTail) Close() {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	if ws := w.hub.watchers[w.run]; ws != nil {
		delete(ws, w)
		if len(ws) == 0 {
			delete(w.hub.watchers, w.run)
		}
	}
}

// Next implements source.
func (w *hubTail) Next(ctx context.Context, until time.Time) (bus.TailMessage, error) {
	var timer <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-w.hub.ready:
	case <-timer:
		return bus.TailMessage{}, bus.ErrNothing
	case <-w.ended:
		return bus.TailMessage{}, w.over(ctx)
	case <-ctx.Done():
		return bus.TailMessage{}, context.Cause(ctx)
	}
	for {
		if w.behind {
			if err := w.read(ctx); err != nil {
				return bus.TailMessage{}, err
			}
		}
		if len(w.ready) > 0 {
			m := w.ready[0]
			w.ready = w.ready[1:]
			w.behind = len(w.ready) == 0 && m.Pending > 0
			return m, nil
		}
		select {
		case m := <-w.in:
			if m.Seq <= w.last {
				continue
			}
			w.last, m.Pending = m.Seq, 0
			return m, nil
		case <-w.lagged:
			w.catchUp()
		case <-timer:
			w.behind = true // a replica may not have had all that was asked of it
			if err := w.read(ctx); err != nil {
				return bus.TailMessage{}, err
			}
			if len(w.ready) == 0 {
				return bus.TailMessage{}, bus.ErrNothing
			}
		case <-w.ended:
			return bus.TailMessage{}, w.over(ctx)
		case <-ctx.Done():
			return bus.TailMessage{}, context.Cause(ctx)
		}
	}
}

// over is why there is no more.
func (w *hubTail) over(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("watch %s: %w", w.run, w.hub.over)
}

// read takes one page of what is stored after last.
func (w *hubTail) read(ctx context.Context) error {
	p := bus.Page{Seq: w.last + 1, Next: w.run.EventFilter(), Batch: hubPage, Bytes: bus.PageBytes}
	err := w.hub.from.bus.Retry(ctx, func(ctx context.Context) error {
		w.ready = w.ready[:0]
		last, pending, _, err := w.hub.from.bus.Stream(bus.StreamEvents).ReadPage(ctx, p, func(m bus.Message, err error) bool {
			if err == nil {
				w.ready = append(w.ready, bus.TailMessage{Message: m})
			}
			return err == nil
		})
		if err != nil {
			return err
		}
		for i := range w.ready {
			w.ready[i].Pending = uint64(len(w.ready)-1-i) + pending
		}
		w.last = max(w.last, last)
		return nil
	})
	if err != nil && errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w.behind = false
	return err
}
