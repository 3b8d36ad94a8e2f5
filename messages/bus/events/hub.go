package events

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

// Hub serves many watchers in one process with one subscription: a watcher reads what is stored of its run once, and
// gets what comes later from memory. Without watchers it has no subscription: every event of the fleet would come for nothing.
type Hub struct {
	// Linger is how long the hub keeps its subscription after its last watcher has left. Set it before Run. Default 30 s.
	Linger time.Duration

	from   *Store
	tail   bus.Tail      // how it reads each stream
	early  []string      // subjects that are heard as they are published too, if this process may: then with the sequence 0
	wanted chan struct{} // has an element when a watcher has come that the hub is to follow for

	mu       sync.Mutex
	ready    chan struct{} // closed while it follows: what is stored from then on is given
	follows  bool          // likewise
	left     time.Time     // when the last watcher left; zero: none has
	lives    int           // of the streams: a sequence of an earlier one names another message, or none
	watchers map[messages.Ref]map[*hubTail]struct{}
	over     error // why the hub has ended

	pending atomic.Uint64 // events that follow the one it had last
	stalls  atomic.Uint64
}

// hubRoom is how many new events wait for a watcher; one that is slower reads them from the stream again.
const hubRoom = 64

// hubLinger is longer than the pause between two runs that a client follows one after the other.
const hubLinger = 30 * time.Second

// NewHub returns a hub; it serves once Run does.
func (st *Store) NewHub() *Hub { return st.newHub(bus.EveryEvent) }

func (st *Store) newHub(filter string) *Hub {
	return &Hub{
		Linger: hubLinger, from: st, tail: bus.Tail{Filter: filter, Strict: true, Room: bus.FollowRoom},
		wanted: make(chan struct{}, 1), ready: make(chan struct{}),
		watchers: map[messages.Ref]map[*hubTail]struct{}{},
	}
}

// Run follows the events while there are watchers, until ctx ends. Watchers that are left then get ctx's cause. It begins to follow at
// once: an error says that it may not. Once it did, it waits for the server as long as that is away.
func (h *Hub) Run(ctx context.Context) error {
	err := h.serve(ctx)
	h.end(err)
	if ctx.Err() == nil {
		return fmt.Errorf("follow events: %w", err)
	}
	return nil
}

// reader reads what comes from now on, or all that is stored.
func (h *Hub) reader(from jetstream.DeliverPolicy) *across {
	t := h.tail
	t.Start.DeliverPolicy = from
	return h.from.across(t, nil)
}

func (h *Hub) serve(ctx context.Context) error {
	for {
		t := h.reader(jetstream.DeliverNewPolicy)
		if err := t.Begin(ctx); err != nil {
			t.Close()
			return err
		}
		h.tail.Patient = true // the process has begun: an outage must not end it
		h.begin()
		if err := h.follow(ctx, t); err != nil {
			return err
		}
		select {
		case <-h.wanted:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// follow gives what comes until there has been no watcher for a while. It closes the reader.
func (h *Hub) follow(ctx context.Context, t *across) error {
	defer func() { t.Close() }()
	defer h.hear(ctx)()
	for !h.rest() {
		m, err := t.Next(ctx, time.Now().Add(h.Linger))
		switch {
		case errors.Is(err, bus.ErrNothing):
		case errors.Is(err, bus.ErrAhead): // a stream lost its end, or was made again: watchers know by its number what they have had
			t.Close()
			h.renew()
			t = h.reader(jetstream.DeliverAllPolicy)
		case err != nil:
			return err
		default:
			h.pending.Store(m.Pending)
			if run, ok := messages.RunOfEvent(m.Subject); ok && !m.stray {
				h.give(run, m.TailMessage)
			}
		}
	}
	return nil
}

// hear gives what is published on the early subjects until stop is called. What is lost on the way comes from the streams.
func (h *Hub) hear(ctx context.Context) (stop func()) {
	var subs []*nats.Subscription
	for _, subject := range h.early {
		sub, err := h.from.bus.Conn().Subscribe(subject, func(m *nats.Msg) {
			if run, ok := messages.RunOfEvent(m.Subject); ok {
				h.give(run, bus.TailMessage{Message: bus.Message{Subject: m.Subject}})
			}
		})
		if err != nil {
			h.from.bus.Log().DebugContext(ctx, "hear events early", "subject", subject, "err", err) // the connection is closed
			continue
		}
		subs = append(subs, sub)
	}
	return func() {
		for _, sub := range subs {
			_ = sub.Unsubscribe() // fails only when the connection is gone
		}
	}
}

// begin lets watchers rely on what they are given.
func (h *Hub) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.follows = true
	close(h.ready)
}

// rest reports whether there has been no watcher for a while. The next one then waits until the hub follows again.
func (h *Hub) rest() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.watchers) > 0 || time.Since(h.left) < h.Linger {
		return false
	}
	h.follows, h.ready = false, make(chan struct{})
	h.pending.Store(0)
	return true
}

// renew has watchers forget the sequences that they have read up to.
func (h *Hub) renew() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lives++
}

func (h *Hub) give(run messages.Ref, m bus.TailMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watchers[run] {
		if w.stalled {
			continue
		}
		select {
		case w.in <- given{m, h.lives}:
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
		hub: h, run: run, in: make(chan given, hubRoom), lagged: make(chan struct{}), ended: make(chan struct{}),
		behind: true,
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over != nil {
		close(w.ended)
		return w
	}
	w.follows, w.life = h.ready, h.lives
	if !h.follows {
		select {
		case h.wanted <- struct{}{}:
		default:
		}
	}
	if h.watchers[run] == nil {
		h.watchers[run] = map[*hubTail]struct{}{}
	}
	h.watchers[run][w] = struct{}{}
	return w
}

// given is a message that the hub had from a life of the streams.
type given struct {
	bus.TailMessage

	life int
}

// hubTail is the source of one watcher. It belongs to one goroutine, but for what the hub gives it.
type hubTail struct {
	hub     *Hub
	run     messages.Ref
	follows <-chan struct{} // closed once the hub follows, which it does while there is this watcher
	in      chan given
	ended   chan struct{}
	lagged  chan struct{} // closed when the hub gives no more, because in was full
	stalled bool          // likewise; the hub's lock holds for it and lagged

	behind bool // what is stored after last is to be read
	last   uint64
	life   int               // of the stream that has last
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
	if len(w.hub.watchers) == 0 {
		w.hub.left = time.Now()
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
	case <-w.follows:
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
			if m.life > w.life {
				w.last, w.life = 0, m.life
			}
			if m.life < w.life || m.Seq <= w.last {
				continue
			}
			w.last, m.Pending = m.Seq, 0
			return m.TailMessage, nil
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

// current forgets what was read of an earlier life of the stream.
func (w *hubTail) current() {
	w.hub.mu.Lock()
	defer w.hub.mu.Unlock()
	if w.hub.lives > w.life {
		w.last, w.life = 0, w.hub.lives
	}
}

// read takes one page of what is stored after last.
func (w *hubTail) read(ctx context.Context) error {
	w.current()
	p := bus.Page{Seq: w.last + 1, Next: w.run.EventFilter(), Batch: hubPage, Bytes: bus.PageBytes}
	err := w.hub.from.bus.Retry(ctx, func(ctx context.Context) error {
		w.ready = w.ready[:0]
		last, pending, _, err := w.hub.from.of(w.run).ReadPage(ctx, p, func(m bus.Message, err error) bool {
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
