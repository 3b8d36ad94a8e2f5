package bus

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
)

// AnswerRoom is the room of an inbox for one answer, or for a few without a message.
const AnswerRoom = 16

// Inbox receives the answers to one request. It belongs to one goroutine. The library's own synchronous subscription
// would take half a megabyte for each.
type Inbox struct {
	nc    *nats.Conn
	Sub   *nats.Subscription
	msgs  chan *nats.Msg
	timer *time.Timer
}

// OpenInbox makes an inbox with room for so many messages at once; what comes beyond is lost.
func OpenInbox(nc *nats.Conn, room int) (*Inbox, error) {
	return OpenInboxAt(nc, nc.NewInbox(), room)
}

// OpenInboxAt is OpenInbox for a subject of one's own, or for all below one.
func OpenInboxAt(nc *nats.Conn, subject string, room int) (*Inbox, error) {
	msgs := make(chan *nats.Msg, room)
	sub, err := nc.ChanSubscribe(subject, msgs)
	if err != nil {
		return nil, err
	}
	return &Inbox{nc, sub, msgs, time.NewTimer(time.Hour)}, nil
}

// Next waits for a message; context.DeadlineExceeded: not within that time.
func (i *Inbox) Next(ctx context.Context, wait time.Duration) (*nats.Msg, error) {
	select { // a message that has arrived needs no timer
	case m := <-i.msgs:
		return m, nil
	default:
	}
	i.timer.Reset(wait)
	select {
	case m := <-i.msgs:
		return m, nil
	case <-i.timer.C:
		return nil, context.DeadlineExceeded
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Close ends the inbox. What comes later is lost.
func (i *Inbox) Close() {
	i.timer.Stop()
	_ = i.Sub.Unsubscribe() // fails only when the connection is gone
}

// Drain closes the inbox and returns what had been sent to it until then.
func (i *Inbox) Drain(ctx context.Context) []*nats.Msg {
	i.timer.Stop()
	if i.Sub.Drain() == nil {
		_ = i.nc.FlushWithContext(ctx) // the server has then sent what it ever will
	}
	var rest []*nats.Msg
	for {
		select {
		case m := <-i.msgs:
			rest = append(rest, m)
		default:
			return rest
		}
	}
}
