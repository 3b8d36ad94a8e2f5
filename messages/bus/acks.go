package bus

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// What was sent this long ago and neither acknowledged nor sent again belongs to an outbox that nobody uses any more.
const (
	abandoned  = 10 * time.Minute
	sweepEvery = 4096
)

// acks receives the acknowledgements of what outboxes have published, all of them on one subscription. The library's
// own asynchronous publish is not used: it sends again by itself, and so out of order.
type acks struct {
	nc     *nats.Conn
	prefix string // of reply subjects

	mu      sync.Mutex
	token   uint64
	waiting map[uint64]*flight
	heard   time.Time // the last acknowledgement
}

// What is held back is sent as fast as it is acknowledged.
const (
	maxFlying  = 1024
	ackSilence = 100 * time.Millisecond // of a server that has lost what was sent, or has stopped
)

// crowded tells whether what is on its way had better arrive first.
func (a *acks) crowded() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.waiting) >= maxFlying && time.Since(a.heard) < ackSilence
}

// listen subscribes until the connection is closed.
func listen(nc *nats.Conn) (*acks, error) {
	a := &acks{nc: nc, prefix: nc.NewInbox() + ".", waiting: map[uint64]*flight{}}
	sub, err := nc.Subscribe(a.prefix+"*", a.receive)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller says what it is
	}
	// One acknowledgement for each message on its way, and the outboxes bound those.
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return nil, err //nolint:wrapcheck // the caller says what it is
	}
	return a, nil
}

// send publishes a message; its flight is told how that ended.
func (a *acks) send(f *flight) {
	f.state.Store(flying)
	a.mu.Lock()
	delete(a.waiting, f.token)
	a.token++
	f.token, f.sent = a.token, time.Now()
	a.waiting[f.token] = f
	if a.token%sweepEvery == 0 {
		maps.DeleteFunc(a.waiting, func(_ uint64, old *flight) bool { return f.sent.Sub(old.sent) > abandoned })
	}
	a.mu.Unlock()
	f.box.header[headerMsgID] = append(f.box.header[headerMsgID][:0], f.id)
	delete(f.box.header, headerIncrement)
	if f.increment != "" {
		f.box.header.Set(headerIncrement, f.increment)
	}
	trace(f.box.header, f.trace)
	m := nats.Msg{Subject: f.subject, Reply: a.prefix + strconv.FormatUint(f.token, 36), Header: f.box.header, Data: f.body}
	if err := a.nc.PublishMsg(&m); err != nil {
		a.forget(f)
		f.land(err)
	}
}

// forget ends the wait for an acknowledgement.
func (a *acks) forget(f *flight) {
	a.mu.Lock()
	delete(a.waiting, f.token)
	a.mu.Unlock()
}

func (a *acks) receive(m *nats.Msg) {
	token, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, a.prefix), 36, 64)
	if err != nil {
		return
	}
	a.mu.Lock()
	f := a.waiting[token]
	delete(a.waiting, token)
	a.heard = time.Now()
	a.mu.Unlock()
	if f != nil {
		f.land(outcome(m))
	}
}

// outcome of a publish. It does not decode the common case.
func outcome(m *nats.Msg) error {
	switch {
	case len(m.Data) == 0 && m.Header.Get(statusHeader) == statusNobody:
		return nats.ErrNoResponders
	case bytes.Contains(m.Data, []byte(`"error"`)):
		_, err := decodeReceipt(m.Data)
		return err
	case !bytes.Contains(m.Data, []byte(`"seq"`)):
		return fmt.Errorf("acknowledge event: %w", errors.New("the answer is not one of a stream"))
	default:
		return nil
	}
}
