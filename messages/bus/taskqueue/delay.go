package taskqueue

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

// submitLater stores a task that the stream publishes at its time. The answer is that of Submit.
func (tq *Queue) submitLater(ctx context.Context, t *messages.Task, body []byte, fresh bool) (duplicate bool, err error) {
	run := t.Ref()
	if !fresh {
		if _, queued, err := tq.Queued(ctx, run); err != nil || queued {
			return queued, err
		}
	}
	m := &nats.Msg{Subject: tq.tasks().Subject(run, run.DelaySubject()), Data: body, Header: nats.Header{
		bus.HeaderMsgID:      {run.MsgID()}, // that of a submit without a delay: the two exclude each other while it counts
		bus.HeaderSchedule:   {"@at " + t.NotBefore.UTC().Format(time.RFC3339Nano)},
		bus.HeaderScheduleTo: {tq.tasks().Subject(run, run.TaskSubject(t.Priority))},
	}}
	bus.SetTrace(m.Header, t.Traceparent)
	bus.Expect(m, 0)
	r, err := tq.bus.Store(ctx, m)
	if bus.Refused(err, bus.CodeWrongLast) {
		return true, nil
	}
	return r.Duplicate, err
}

// Delayed returns the task of a run that waits for its time, with the subject on which it will be published. The
// stream's leader answers.
func (tq *Queue) Delayed(ctx context.Context, run messages.Ref) (q Queued, ok bool, err error) {
	if err := run.Check(); err != nil {
		return Queued{}, false, err
	}
	m, ok, err := tq.tasks().Of(run).Get(ctx, bus.Lookup{Last: run.DelaySubject()})
	if err != nil || !ok {
		return Queued{}, false, err
	}
	return delayedOf(m)
}

func delayedOf(m bus.Message) (q Queued, ok bool, err error) {
	if m.Header.Get(bus.HeaderSchedule) == "" { // a message that a schedule put here is not itself a schedule
		return Queued{}, false, nil
	}
	at, err := time.Parse(time.RFC3339Nano, strings.TrimPrefix(m.Header.Get(bus.HeaderSchedule), "@at "))
	if err != nil {
		return Queued{}, false, fmt.Errorf("read the schedule on %s: %w", m.Subject, err)
	}
	return Queued{Subject: bus.AsStored(m.Header.Get(bus.HeaderScheduleTo)), Body: m.Data, At: m.Time, Seq: m.Seq, Later: at}, true, nil
}
