package runlogs

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages/bus"
)

// What was sent this long ago and neither acknowledged nor sent again belongs to an outbox that is no longer used.
const (
	abandoned  = 10 * time.Minute
	sweepEvery = 4096
)

// What is held back is sent as fast as it is acknowledged.
const (
	maxFlying  = 1024
	ackSilence = 100 * time.Millisecond // of a server that has lost what was sent, or has stopped
)

// flights sends the events of all outboxes and receives their acknowledgements, all of them on one subscription. The library's
// own asynchronous publish is not used: it sends again by itself, and so out of order.
type flights struct {
	bus *bus.Bus

	mu      sync.Mutex
	prefix  string // of reply subjects; empty before the first flight
	token   uint64
	waiting map[uint64]*flight
	sent    uint64    // ever
	heard   time.Time // when the last one arrived
}

// crowded reports whether what is on its way had better arrive first.
func (a *flights) crowded() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.waiting) >= maxFlying && time.Since(a.heard) < ackSilence
}

// send publishes a message; its flight is told how that ended.
func (a *flights) send(f *flight) {
	f.state.Store(flying)
	if err := a.publish(f); err != nil {
		a.mu.Lock()
		delete(a.waiting, f.token)
		a.mu.Unlock()
		f.land(err)
	}
}

func (a *flights) publish(f *flight) error {
	reply, err := a.await(f)
	if err != nil {
		return err
	}
	f.box.header[bus.HeaderMsgID] = append(f.box.header[bus.HeaderMsgID][:0], f.id)
	delete(f.box.header, bus.HeaderIncrement)
	if f.increment != "" {
		f.box.header.Set(bus.HeaderIncrement, f.increment)
	}
	bus.SetTrace(f.box.header, f.trace)
	return a.bus.Conn().PublishMsg(&nats.Msg{Subject: f.subject, Reply: reply, Header: f.box.header, Data: f.body})
}

// await expects the acknowledgement of a flight, and returns the subject for it.
func (a *flights) await(f *flight) (reply string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, f.token)
	f.sent = time.Now()
	if a.prefix == "" {
		if err := a.listen(); err != nil {
			return "", err
		}
	}
	a.token++
	f.token = a.token
	a.waiting[a.token] = f
	if a.sent++; a.sent%sweepEvery == 0 {
		a.sweep(f.sent)
	}
	return a.prefix + strconv.FormatUint(a.token, 36), nil
}

// listen subscribes until the connection is closed. The caller has the lock.
func (a *flights) listen() error {
	prefix := a.bus.Conn().NewInbox() + "."
	sub, err := a.bus.Conn().Subscribe(prefix+"*", func(m *nats.Msg) { a.receive(m, strings.TrimPrefix(m.Subject, prefix)) })
	if err != nil {
		return err
	}
	// One answer for each flight; the outboxes bound those.
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return err
	}
	a.prefix, a.waiting = prefix, map[uint64]*flight{}
	return nil
}

// sweep drops the flights of outboxes that are no longer used. The caller has the lock.
func (a *flights) sweep(now time.Time) {
	for token, f := range a.waiting {
		if now.Sub(f.sent) > abandoned {
			delete(a.waiting, token)
		}
	}
}

func (a *flights) receive(m *nats.Msg, name string) {
	token, err := strconv.ParseUint(name, 36, 64)
	if err != nil {
		return
	}
	a.mu.Lock()
	f := a.waiting[token]
	if f != nil {
		delete(a.waiting, token)
		a.heard = time.Now()
	}
	a.mu.Unlock()
	if f != nil {
		f.land(bus.PublishOutcome(m))
	}
}
