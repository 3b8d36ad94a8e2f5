package bus

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
)

// submitLater stores a task that the stream publishes at its time. The answer is that of Submit.
func (b *Bus) submitLater(ctx context.Context, t *messages.Task, body []byte, fresh bool) (duplicate bool, err error) {
	run := t.Ref()
	if !fresh {
		if _, queued, err := b.Queued(ctx, run); err != nil || queued {
			return queued, err
		}
	}
	m := &nats.Msg{Subject: run.DelaySubject(), Data: body, Header: nats.Header{
		HeaderMsgID:      {run.MsgID()}, // that of a submit without a delay: the two exclude each other while it counts
		HeaderSchedule:   {"@at " + t.NotBefore.UTC().Format(time.RFC3339Nano)},
		HeaderScheduleTo: {run.TaskSubject(t.Priority)},
	}}
	trace(m.Header, t.Traceparent)
	Expect(m, 0)
	r, err := b.Store(ctx, m)
	if Refused(err, CodeWrongLast) {
		return true, nil
	}
	return r.Duplicate, err
}

// Delayed returns the task of a run that waits for its time, with the subject on which it will be published. The
// stream's leader answers.
func (b *Bus) Delayed(ctx context.Context, run messages.Ref) (q Queued, ok bool, err error) {
	if err := run.Check(); err != nil {
		return Queued{}, false, err
	}
	m, ok, err := b.Get(ctx, StreamTasks, Lookup{Last: run.DelaySubject()})
	if err != nil || !ok {
		return Queued{}, false, err
	}
	return delayedOf(m)
}

func delayedOf(m Message) (q Queued, ok bool, err error) {
	if m.Header.Get(HeaderSchedule) == "" { // what somebody's schedule put here is none itself
		return Queued{}, false, nil
	}
	at, err := time.Parse(time.RFC3339Nano, strings.TrimPrefix(m.Header.Get(HeaderSchedule), "@at "))
	if err != nil {
		return Queued{}, false, fmt.Errorf("read the schedule on %s: %w", m.Subject, err)
	}
	return Queued{Subject: m.Header.Get(HeaderScheduleTo), Body: m.Data, At: m.Time, Seq: m.Seq, Later: at}, true, nil
}
