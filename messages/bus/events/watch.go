package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

// Types of the events that a watch puts in the place of those it has not got. Their data is a Gap. They are in no
// stream.
const (
	TypeEventsMissing = "longshore.events_missing.v1" // they may come later, and are then not shown
	TypeEventsExpired = "longshore.events_expired.v1" // the stream has dropped them for their age
)

// Gap is the data of an event that stands for others: those with the running numbers First to Last.
type Gap struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

const (
	defaultPatience = 5 * time.Second
	// An event is old, so that nothing can still come before it whatever the clocks say, after so many patiences.
	settledAfter = 12
	watchRoom    = 1024      // of a tail; there are many watchers
	maxHeld      = 4096      // events that wait for one before them
	maxAhead     = 1_000_000 // how far the number of an event may be beyond the one that is awaited
)

// Watch yields the events of a run, from the first one on and then live, by running number, each once. It ends after
// run_finished. When ctx ends its error comes. A run that does not exist yet is waited for.
//
// An event that does not come within 5 seconds is replaced by an event of TypeEventsMissing or TypeEventsExpired.
func (st *Store) Watch(ctx context.Context, run messages.Ref) iter.Seq2[messages.Event, error] {
	return st.WatchPatiently(ctx, run, defaultPatience)
}

// WatchPatiently is Watch with another time to wait for an event that is missing.
func (st *Store) WatchPatiently(ctx context.Context, run messages.Ref, patience time.Duration) iter.Seq2[messages.Event, error] {
	return st.watch(ctx, run, patience, func() source {
		if st.bus.Pages() != nil {
			return &pageTail{from: st, run: run}
		}
		t := &bus.Tail{Bus: st.bus, Stream: st.bus.Partitions(bus.StreamEvents).NameOf(run), Filter: run.EventFilter(), Room: watchRoom}
		t.Start.DeliverPolicy = jetstream.DeliverAllPolicy
		return t
	})
}

// source gives the messages of a run's events as they were stored. With until, it gives errNothing at that time.
type source interface {
	Next(ctx context.Context, until time.Time) (bus.TailMessage, error)
	Close()
}

func (st *Store) watch(ctx context.Context, run messages.Ref, patience time.Duration, open func() source) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		if err := run.Check(); err != nil {
			yield(messages.Event{}, err)
			return
		}
		w := watching{from: st, run: run, patience: patience, tail: open(), next: 1, held: map[uint64]heldEvent{}}
		defer w.tail.Close()
		for {
			e, err := w.event(ctx)
			if !yield(e, err) || err != nil || e.Name() == messages.EventRunFinished {
				return
			}
		}
	}
}

// watching puts the events of a run in order.
type watching struct {
	from     *Store
	run      messages.Ref
	patience time.Duration
	tail     source

	next  uint64 // the running number to yield
	held  map[uint64]heldEvent
	until time.Time // when patience with a gap ends; zero: there is none
	live  bool      // all that is stored has been read
}

type heldEvent struct {
	messages.Event
	stored time.Time
}

// event waits for the next event in order, or for a marker in its place.
func (w *watching) event(ctx context.Context) (messages.Event, error) {
	for {
		if h, ok := w.held[w.next]; ok {
			delete(w.held, w.next)
			w.until = time.Time{}
			w.next++
			return h.Event, nil
		}
		if gap, ok := w.gap(); ok {
			if w.isDue(gap) {
				return w.marker(ctx, gap)
			}
			if w.until.IsZero() {
				w.until = time.Now().Add(w.patience)
			}
		}
		m, err := w.tail.Next(ctx, w.until)
		switch {
		case errors.Is(err, bus.ErrNothing):
		case err != nil:
			return messages.Event{}, err
		default:
			w.take(m)
		}
	}
}

func (w *watching) take(m bus.TailMessage) {
	w.live = m.Pending == 0
	for e := range w.from.bus.Each(m.Message) {
		if e.Number() < w.next {
			continue
		}
		if e.Number()-w.next > maxAhead { // no event of ours is so far ahead of the others
			w.from.bus.Foreign()
			continue
		}
		if _, known := w.held[e.Number()]; !known {
			w.held[e.Number()] = heldEvent{e, m.Time}
		}
	}
}

// gap is what misses before the first held event.
func (w *watching) gap() (Gap, bool) {
	if len(w.held) == 0 {
		return Gap{}, false
	}
	first := ^uint64(0)
	for n := range w.held {
		first = min(first, n)
	}
	return Gap{w.next, first - 1}, true
}

// isDue reports whether there is no more to wait for: patience is over, or the event after the gap is old.
func (w *watching) isDue(g Gap) bool {
	if len(w.held) >= maxHeld || !w.until.IsZero() && !time.Now().Before(w.until) {
		return true
	}
	return w.live && w.isSettled(g)
}

func (w *watching) isSettled(g Gap) bool {
	return time.Since(w.held[g.Last+1].stored) > settledAfter*w.patience
}

// marker stands for the events of a gap, and continues after it.
func (w *watching) marker(ctx context.Context, g Gap) (messages.Event, error) {
	kind := TypeEventsMissing
	if g.First == 1 && w.isSettled(g) { // else they would have been seen, or may still come
		expired, err := w.expired(ctx)
		if err != nil {
			return messages.Event{}, err
		}
		if expired {
			kind = TypeEventsExpired
		}
	}
	data, err := json.Marshal(g)
	if err != nil {
		return messages.Event{}, fmt.Errorf("encode gap: %w", err)
	}
	n := strconv.FormatUint(g.Last, 10)
	after := w.held[g.Last+1]
	w.next, w.until = g.Last+1, time.Time{}
	return messages.Event{
		SpecVersion: "1.0", ID: w.run.Run + "." + n, Source: "/tenants/" + w.run.Tenant, Type: kind,
		Subject: w.run.Run, Time: after.Time, DataContentType: "application/json", Sequence: n, Data: data,
	}, nil
}

// expired reports whether the stream has dropped messages for their age.
func (w *watching) expired(ctx context.Context) (bool, error) {
	if p, ok := w.tail.(*pageTail); ok {
		return p.expired, nil
	}
	return w.from.eventsExpired(ctx, w.run)
}
