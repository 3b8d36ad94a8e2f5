package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// What was sent this long ago and neither acknowledged nor sent again belongs to an outbox that is no longer used.
const (
	abandoned  = 10 * time.Minute
	sweepEvery = 4096
)

// acks receives the answers to what is published, all of them on one subscription: the acknowledgements of outboxes and the
// answers to requests. The library's own asynchronous publish is not used: it sends again by itself, and so out of order;
// nor is its request where it is frequent: it makes a context, a timer and a subject for each.
type acks struct {
	nc      *nats.Conn
	prefix  string // of reply subjects
	storage storage
	idle    sync.Pool // of *request

	mu      sync.Mutex
	token   uint64
	waiting map[uint64]awaiting
	flights int       // of those, and no requests
	sent    uint64    // flights, ever
	heard   time.Time // when the last flight arrived
	ended   bool      // no more answers will come
}

// awaiting waits for an answer.
type awaiting interface {
	// arrive tells the answer, once, and does not wait; to a request it may be nil: the connection is closed.
	arrive(m *nats.Msg)
}

// What is held back is sent as fast as it is acknowledged.
const (
	maxFlying  = 1024
	ackSilence = 100 * time.Millisecond // of a server that has lost what was sent, or has stopped
)

// crowded reports whether what is on its way had better arrive first.
func (a *acks) crowded() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.flights >= maxFlying && time.Since(a.heard) < ackSilence
}

// listen subscribes until the connection is closed.
func listen(nc *nats.Conn) (*acks, error) {
	a := &acks{nc: nc, prefix: nc.NewInbox() + ".", waiting: map[uint64]awaiting{}}
	sub, err := nc.Subscribe(a.prefix+"*", a.receive)
	if err != nil {
		return nil, err
	}
	sub.SetClosedHandler(func(string) { a.end() })
	// One answer for each message on its way; the outboxes bound those, and who asks waits.
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return nil, err
	}
	return a, nil
}

// send publishes a message; its flight is told how that ended.
func (a *acks) send(f *flight) {
	f.state.Store(flying)
	now := time.Now()
	a.mu.Lock()
	a.drop(f.token)
	a.flights++
	f.sent, f.token = now, a.await(f)
	if a.sent++; a.sent%sweepEvery == 0 {
		a.sweep(now)
	}
	a.mu.Unlock()
	f.box.header[HeaderMsgID] = append(f.box.header[HeaderMsgID][:0], f.id)
	delete(f.box.header, headerIncrement)
	if f.increment != "" {
		f.box.header.Set(headerIncrement, f.increment)
	}
	SetTrace(f.box.header, f.trace)
	m := nats.Msg{Subject: f.subject, Reply: a.reply(f.token), Header: f.box.header, Data: f.body}
	if err := a.nc.PublishMsg(&m); err != nil {
		a.forget(f.token)
		f.land(err)
	}
}

// request is one that waits for its answer.
type request struct {
	answer chan *nats.Msg // buffered
	timer  *time.Timer
}

func (r *request) arrive(m *nats.Msg) { r.answer <- m }

// ask publishes a message and waits for the answer: context.DeadlineExceeded when there is none in time,
// nats.ErrNoResponders when there will be none.
func (a *acks) ask(ctx context.Context, m *nats.Msg, wait time.Duration) (*nats.Msg, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	r, ok := a.idle.Get().(*request)
	if ok {
		r.timer.Reset(wait)
	} else {
		r = &request{make(chan *nats.Msg, 1), time.NewTimer(wait)}
	}
	answer, err := a.exchange(ctx, m, r)
	r.timer.Stop() // before another request has it
	if err == nil {
		a.idle.Put(r) // else its answer may come yet
	}
	switch {
	case err != nil:
		return nil, err
	case answer == nil:
		return nil, nats.ErrConnectionClosed
	case noResponder(answer):
		return nil, nats.ErrNoResponders
	default:
		return answer, nil
	}
}

// exchange is ask with a request. Without an error the request has had its answer; nil: there will be none.
func (a *acks) exchange(ctx context.Context, m *nats.Msg, r *request) (*nats.Msg, error) {
	a.mu.Lock()
	if a.ended {
		a.mu.Unlock()
		return nil, nats.ErrConnectionClosed
	}
	token := a.await(r)
	a.mu.Unlock()
	m.Reply = a.reply(token)
	err := a.nc.PublishMsg(m)
	if err == nil {
		select {
		case answer := <-r.answer:
			return answer, nil
		case <-r.timer.C:
			err = context.DeadlineExceeded
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	a.forget(token)
	return nil, err
}

// end tells all who ask that there will be no answer.
func (a *acks) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	for token, w := range a.waiting {
		if r, ok := w.(*request); ok {
			a.drop(token)
			r.arrive(nil)
		}
	}
}

// await returns the token of an answer. The caller has the lock.
func (a *acks) await(w awaiting) uint64 {
	a.token++
	a.waiting[a.token] = w
	return a.token
}

func (a *acks) reply(token uint64) string { return a.prefix + strconv.FormatUint(token, 36) }

// forget ends the wait for an answer.
func (a *acks) forget(token uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.drop(token)
}

// drop is forget for who has the lock. It returns who waited.
func (a *acks) drop(token uint64) awaiting {
	w := a.waiting[token]
	if _, ok := w.(*flight); ok {
		a.flights--
	}
	delete(a.waiting, token)
	return w
}

// sweep drops what is no longer waited for.
func (a *acks) sweep(now time.Time) {
	for token, w := range a.waiting {
		if f, ok := w.(*flight); ok && now.Sub(f.sent) > abandoned {
			a.drop(token)
		}
	}
}

func (a *acks) receive(m *nats.Msg) {
	token, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, a.prefix), 36, 64)
	if err != nil {
		return
	}
	a.mu.Lock()
	w := a.drop(token)
	if _, ok := w.(*flight); ok {
		a.heard = time.Now()
	}
	a.mu.Unlock()
	if w != nil {
		w.arrive(m)
	}
}

// noResponder reports whether an answer is the server's notice that there is no responder.
func noResponder(m *nats.Msg) bool {
	return len(m.Data) == 0 && m.Header.Get(StatusHeader) == StatusNoResponders
}

// PublishOutcome of a publish. It does not decode the common case.
func PublishOutcome(m *nats.Msg) error {
	switch {
	case noResponder(m):
		return nats.ErrNoResponders
	case bytes.Contains(m.Data, []byte(`"error"`)):
		_, err := decodeReceipt(m.Data)
		return err
	case !bytes.Contains(m.Data, []byte(`"seq"`)):
		return fmt.Errorf("acknowledge event: %w", errors.New("the answer is not an acknowledgement"))
	default:
		return nil
	}
}
