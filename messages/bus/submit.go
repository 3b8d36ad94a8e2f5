package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
)

// maxHeaders is room for what a message carries besides its body; the server counts both.
const maxHeaders = 1 << 10

// Submit publishes a task. A duplicate means that the run has a queued message already, or began before, so the caller
// must find out whether it is of the same task; nothing more is stored then. An id that is not fresh may be that of a
// run which has left the queue, or has not entered it: events and schedules tell, at the price of two more requests.
//
// A task that is not to begin yet waits outside of the queue: it is stored as a schedule, which publishes it then. Only
// a dispatcher may do that, for a schedule could publish on any subject.
func (b *Bus) Submit(ctx context.Context, t *messages.Task, fresh bool) (duplicate bool, err error) {
	run := t.Ref()
	now := time.Now()
	if err := errors.Join(t.Validate(), run.Check(), t.CheckDelay(now)); err != nil {
		return false, err
	}
	body := t.Encode()
	if err := b.CheckSize(body); err != nil {
		return false, err
	}
	if !fresh {
		if known, err := b.known(ctx, run); err != nil || known {
			return known, err
		}
		if delayed, err := b.waits(ctx, run); err != nil || delayed {
			return delayed, err
		}
	}
	if t.Delay(now) > 0 {
		return b.submitLater(ctx, t, body, fresh)
	}
	m := &nats.Msg{Subject: run.TaskSubject(t.Priority), Data: body, Header: nats.Header{
		HeaderMsgID:     {run.MsgID()},
		HeaderExpectFor: {run.QueuedFilter()}, // whatever its priority was
	}}
	trace(m.Header, t.Traceparent)
	Expect(m, 0)
	r, err := b.Store(ctx, m)
	if Refused(err, CodeWrongLast) {
		return true, nil
	}
	return r.Duplicate, err
}

// CheckSize reports whether the server takes a message with such a body.
func (b *Bus) CheckSize(body []byte) error {
	if limit := b.nc.MaxPayload() - maxHeaders; int64(len(body)) > limit {
		reason := fmt.Sprintf("%d bytes, more than the server takes: raise its max_payload of %d", len(body), b.nc.MaxPayload())
		return &messages.FieldError{Field: "body", Reason: reason}
	}
	return nil
}

// Queued is a message of a run in the queue: its task, or a wake-up.
type Queued struct {
	Subject string // as stored: tells the priority
	Body    []byte
	At      time.Time
	Seq     uint64
	Later   time.Time // when a delayed task comes to the queue
}

// Queued returns the run's oldest message in the queue. The stream's leader answers.
func (b *Bus) Queued(ctx context.Context, run messages.Ref) (q Queued, ok bool, err error) {
	if err := run.Check(); err != nil {
		return Queued{}, false, err
	}
	m, ok, err := b.Get(ctx, StreamTasks, Lookup{Seq: 1, Next: run.QueuedFilter()})
	return Queued{Subject: m.Subject, Body: m.Data, At: m.Time, Seq: m.Seq}, ok, err
}

// Unqueue removes every message of the run from the queue, and its task if that waits for its time.
func (b *Bus) Unqueue(ctx context.Context, run messages.Ref) error {
	if err := run.Check(); err != nil {
		return err
	}
	if err := b.Clear(ctx, StreamTasks, run.DelaySubject()); err != nil { // first: it may fire meanwhile
		return err
	}
	return b.Clear(ctx, StreamTasks, run.QueuedFilter())
}
