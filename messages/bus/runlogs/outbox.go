package runlogs

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

// window is how many events of one run may be on their way.
const window = 256

// Open implements runlog.Events.
func (st *Store) Open(run messages.Ref) runlog.Outbox {
	return &outbox{store: st, run: run, ids: run.MsgID() + ".", landed: make(chan struct{}, 1), header: nats.Header{}}
}

// Ended implements runlog.Events; the stream's leader answers.
func (st *Store) Ended(ctx context.Context, run messages.Ref) (bool, error) {
	if err := run.Check(); err != nil {
		return false, err
	}
	_, ok, err := st.bus.Partitions(bus.StreamEvents).Of(run).Get(ctx, bus.Lookup{Last: run.EventSubject(messages.EventRunFinished)})
	return ok, err
}

// outbox publishes the events of one run. Events are sent in order without waiting; when one fails, it and all after
// it are sent again in order. While the Store has many appends on their way they are held back for a moment.
type outbox struct {
	store  *Store
	run    messages.Ref
	ids    string        // what the ids of its messages begin with
	landed chan struct{} // has an element after a flight has ended

	mu      sync.Mutex  // its owner's, but for the moment when the pacer sends what is held back
	header  nats.Header // of the message that is being sent: a publish copies it
	held    []draft     // not sent yet
	waits   bool        // the pacer will send them
	flights []*flight   // not known to be stored, in order
	given   uint64      // the last entry that was given to Publish
	resent  int         // how often in a row
	again   time.Time   // not before then
	err     error       // an event that cannot be sent
}

// maxDrafts is how many drafts are held back at most.
const maxDrafts = 32

// draft is what one entry has to say, not made yet, or what it cost.
type draft struct {
	before uint64 // the entry before
	events iter.Seq[messages.Event]
	cost   letter
}

// States of a flight.
const (
	flying int32 = iota
	arrived
	failed
)

// flight is one event on its way.
type flight struct {
	box *outbox
	letter
	before uint64 // the entry before the event's
	sent   time.Time
	token  uint64

	// How it ended, which the acknowledgement tells from another goroutine.
	state atomic.Int32
	err   atomic.Pointer[error] // once it has failed
}

// land tells how a flight ended.
func (f *flight) land(err error) {
	if err != nil {
		failure := err // only this one need live on
		f.err.Store(&failure)
		f.state.Store(failed)
	} else {
		f.state.Store(arrived)
		if f.box.mu.TryLock() { // else its owner does it
			f.box.collect() // a run may wait for long now: it shall not keep what it has sent
			f.box.mu.Unlock()
		}
	}
	select {
	case f.box.landed <- struct{}{}:
	default:
	}
}

// Publish implements runlog.Outbox. With 256 events on their way it waits for acknowledgements, at most for the
// budget of the Bus.
func (o *outbox) Publish(ctx context.Context, seq uint64, events iter.Seq[messages.Event]) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return
	}
	before := o.given
	o.given = seq
	o.add(ctx, draft{before: before, events: events})
	o.collect()
	o.resend()
}

// add sends a draft, or holds it back.
func (o *outbox) add(ctx context.Context, d draft) {
	o.held = append(o.held, d)
	switch {
	case !o.store.pacer.busy(), len(o.held) > maxDrafts:
		o.send(func() { o.makeRoom(ctx) })
	case !o.waits:
		o.waits = true
		o.store.pacer.hold(o)
	}
}

// send sends what is held back, and asks for room before each message.
func (o *outbox) send(room func()) {
	held := o.held
	o.held = nil
	fly := func(before uint64, l letter) {
		room()
		o.fly(before, l)
	}
	var open bundle
	for _, d := range held {
		if d.events == nil {
			fly(open.earliest(d.before), d.cost)
			continue
		}
		for e := range d.events {
			l, err := o.letter(&e)
			if err != nil {
				open.close(o, fly)
				o.err, o.given = err, d.before
				return
			}
			bundled := o.store.cfg.Bundles && messages.Bundled(e.Name())
			if !bundled || !open.fits(&l) {
				open.close(o, fly)
			}
			if bundled {
				open.add(d.before, l, e.Sequence)
			} else {
				fly(d.before, l)
			}
		}
	}
	open.close(o, fly)
}

// makeRoom waits until one more may be on its way.
func (o *outbox) makeRoom(ctx context.Context) {
	if len(o.flights) >= window {
		_ = o.drain(ctx, window-1) // shows in Flush
	}
}

// fly sends one message.
func (o *outbox) fly(before uint64, l letter) {
	f := &flight{box: o, letter: l, before: before}
	o.flights = append(o.flights, f)
	o.store.flights.send(f)
}

// release sends what is held back, for the pacer, which must not wait for one of many. It reports false while the owner
// sends, which may take long, and while too much is on its way already.
func (o *outbox) release() bool {
	if !o.mu.TryLock() {
		return false
	}
	defer o.mu.Unlock()
	o.collect()
	if len(o.held) > 0 && len(o.flights) > window/2 && !o.store.bus.Conn().IsClosed() {
		o.resend() // its owner may have left it
		return false
	}
	o.waits = false
	o.send(func() {}) // a little more than the window, at most
	return true
}

// envelope is about how much an event is longer than its data.
const envelope = 352

// letter is an event, encoded once for all the times it may be sent.
type letter struct {
	subject, id string
	body        []byte
	increment   string // of a counter, which has no body
	trace       string // of an event
}

// subject is where an event of a name is published.
func (o *outbox) subject(name string) string {
	return o.store.bus.Partitions(bus.StreamEvents).Subject(o.run, o.run.EventSubject(name))
}

func (o *outbox) letter(e *messages.Event) (letter, error) {
	if err := o.run.Check(); err != nil {
		return letter{}, err
	}
	name := e.Name()
	if !strict.ValidToken(name) {
		return letter{}, fmt.Errorf("publish event %s: its type is not one of ours", e.Sequence)
	}
	return letter{
		subject: o.subject(name), id: o.ids + e.Sequence, body: record.AppendEvent(make([]byte, 0, len(e.Data)+envelope), e), trace: e.Traceparent,
	}, nil
}

// Through implements runlog.Outbox.
func (o *outbox) Through() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.collect()
	switch {
	case len(o.flights) > 0:
		return o.flights[0].before
	case len(o.held) > 0:
		return o.held[0].before
	default:
		return o.given
	}
}

// Flush implements runlog.Outbox. Without an acknowledgement for the budget of the Bus it gives up.
func (o *outbox) Flush(ctx context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.send(func() { o.makeRoom(ctx) })
	if o.err != nil {
		return o.err
	}
	return o.drain(ctx, 0)
}

// Finish implements runlog.Outbox.
func (o *outbox) Finish(ctx context.Context, e messages.Event) error {
	if err := o.Flush(ctx); err != nil {
		return err
	}
	l, err := o.letter(&e)
	if err != nil {
		return err
	}
	m := &nats.Msg{Subject: l.subject, Data: l.body, Header: nats.Header{bus.HeaderMsgID: {l.id}}}
	bus.SetTrace(m.Header, l.trace)
	return o.store.bus.StoreFirst(ctx, m)
}

// collect forgets the events that are stored, up to the first that is not.
func (o *outbox) collect() {
	n := 0
	for n < len(o.flights) && o.flights[n].state.Load() == arrived {
		n++
	}
	if n > 0 {
		o.resent = 0
		clear(o.flights[:n])
		o.flights = o.flights[n:]
	}
}

// resend sends everything again if the first event has failed, or is overdue, unless it did so a moment ago.
func (o *outbox) resend() {
	if len(o.flights) == 0 {
		return
	}
	now := time.Now()
	if now.Before(o.again) || o.flights[0].state.Load() == flying && now.Before(o.flights[0].sent.Add(o.store.bus.Answer())) {
		return
	}
	o.again = now.Add(bus.Backoff(o.resent))
	o.resent++
	for _, f := range o.flights {
		o.store.flights.send(f)
	}
}

// drain waits until no more than some are on their way.
func (o *outbox) drain(ctx context.Context, most int) error {
	timer := time.NewTimer(o.store.bus.Budget())
	defer timer.Stop()
	patience := time.Now().Add(o.store.bus.Budget())
	for before := len(o.flights); ; {
		o.collect()
		if len(o.flights) <= most {
			return nil
		}
		if len(o.flights) < before {
			before = len(o.flights)
			patience = time.Now().Add(o.store.bus.Budget())
		}
		first := o.flights[0]
		if first.state.Load() == failed && !bus.Transient(*first.err.Load()) {
			return fmt.Errorf("publish %s: %w", first.subject, *first.err.Load())
		}
		o.resend()
		if err := o.wait(ctx, timer, patience); err != nil {
			return fmt.Errorf("publish %s: %w", first.subject, err)
		}
	}
}

// wait blocks until something has landed or may be sent again, at most until patience is at an end.
func (o *outbox) wait(ctx context.Context, timer *time.Timer, patience time.Time) error {
	first := o.flights[0]
	at := o.again
	if due := first.sent.Add(o.store.bus.Answer()); first.state.Load() == flying && due.After(at) {
		at = due
	}
	if at.After(patience) {
		at = patience
	}
	timer.Reset(time.Until(at))
	select {
	case <-o.landed:
		return nil
	case <-timer.C:
		if !time.Now().Before(patience) {
			return fmt.Errorf("no acknowledgement for %v", o.store.bus.Budget())
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
