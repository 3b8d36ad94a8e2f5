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

// answers receives the answers to requests, all of them on one subscription. The library's own request is not used where it is
// frequent: it makes a context, a timer and a subject for each.
type answers struct {
	nc      *nats.Conn
	prefix  string // of reply subjects
	storage storage
	idle    sync.Pool // of *request

	mu      sync.Mutex
	token   uint64
	waiting map[uint64]*request
	ended   bool // no further answer comes
}

// listen subscribes until the connection is closed.
func listen(nc *nats.Conn) (*answers, error) {
	a := &answers{nc: nc, prefix: nc.NewInbox() + ".", waiting: map[uint64]*request{}}
	sub, err := nc.Subscribe(a.prefix+"*", a.receive)
	if err != nil {
		return nil, err
	}
	sub.SetClosedHandler(func(string) { a.end() })
	// One answer for each request, which waits for it.
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return nil, err
	}
	return a, nil
}

// request is one that waits for its answer.
type request struct {
	answer chan *nats.Msg // buffered; nil: the connection is closed
	timer  *time.Timer
}

// ask publishes a message and waits for the answer: context.DeadlineExceeded when there is none in time,
// nats.ErrNoResponders when there will be none.
func (a *answers) ask(ctx context.Context, m *nats.Msg, wait time.Duration) (*nats.Msg, error) {
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
func (a *answers) exchange(ctx context.Context, m *nats.Msg, r *request) (*nats.Msg, error) {
	a.mu.Lock()
	if a.ended {
		a.mu.Unlock()
		return nil, nats.ErrConnectionClosed
	}
	a.token++
	token := a.token
	a.waiting[token] = r
	a.mu.Unlock()
	m.Reply = a.prefix + strconv.FormatUint(token, 36)
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
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, token)
	return nil, err
}

// end tells all requests that there will be no answer.
func (a *answers) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	for _, r := range a.waiting {
		r.answer <- nil
	}
	clear(a.waiting)
}

func (a *answers) receive(m *nats.Msg) {
	token, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, a.prefix), 36, 64)
	if err != nil {
		return
	}
	a.mu.Lock()
	r := a.waiting[token]
	delete(a.waiting, token)
	a.mu.Unlock()
	if r != nil {
		r.answer <- m
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
