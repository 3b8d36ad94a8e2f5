package taskqueue

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

// Submit publishes a task. A duplicate means that the run has a queued message already, or began before, so the caller
// must find out whether it is of the same task; nothing more is stored then. An id that is not fresh may be that of a
// run which has left the queue, or has not entered it: events and schedules tell, at the price of two more requests.
//
// A task that is not to begin yet waits outside of the queue: it is stored as a schedule, which publishes it then. Only
// a dispatcher may do that, for a schedule could publish on any subject.
func (tq *Queue) Submit(ctx context.Context, t *messages.Task, fresh bool) (duplicate bool, err error) {
	run := t.Ref()
	now := time.Now()
	if err := errors.Join(t.Validate(), run.Check(), t.CheckDelay(now)); err != nil {
		return false, err
	}
	body := t.Encode()
	if err := tq.bus.CheckSize(body); err != nil {
		return false, err
	}
	if !fresh {
		if known, err := tq.known(ctx, run); err != nil || known {
			return known, err
		}
		if delayed, err := tq.waits(ctx, run); err != nil || delayed {
			return delayed, err
		}
	}
	if t.Delay(now) > 0 {
		return tq.submitLater(ctx, t, body, fresh)
	}
	m := &nats.Msg{Subject: tq.tasks().Subject(run, run.TaskSubject(t.Priority)), Data: body, Header: nats.Header{
		bus.HeaderMsgID:     {run.MsgID()},
		bus.HeaderExpectFor: {run.QueuedFilter()}, // whatever its priority was
	}}
	bus.SetTrace(m.Header, t.Traceparent)
	bus.Expect(m, 0)
	r, err := tq.bus.Store(ctx, m)
	if bus.Refused(err, bus.CodeWrongLast) {
		return true, nil
	}
	return r.Duplicate, err
}

// Queued is a message of a run in the queue: its task, or a wake-up.
type Queued struct {
	Subject string // as stored: tells the priority
	Body    []byte
	At      time.Time
	Seq     uint64
	Later   time.Time // when a delayed task comes to the queue

	// Partition of the queue that has it, if that is divided.
	Partition int
}

// Position is where it is in the queue, as QueuedTasks counts.
func (q *Queued) Position() uint64 { return uint64(q.Partition)<<positionBits | q.Seq }

// A position has the sequence in so many bits and the partition above them, which JSON carries as a number.
const positionBits = 47

// Queued returns the run's oldest message in the queue. The stream's leader answers.
func (tq *Queue) Queued(ctx context.Context, run messages.Ref) (q Queued, ok bool, err error) {
	if err := run.Check(); err != nil {
		return Queued{}, false, err
	}
	m, ok, err := tq.tasks().Of(run).Get(ctx, bus.Lookup{Seq: 1, Next: run.QueuedFilter()})
	return Queued{Subject: m.Subject, Body: m.Data, At: m.Time, Seq: m.Seq}, ok, err
}

// Unqueue removes every message of the run from the queue, and its task if that waits for its time.
func (tq *Queue) Unqueue(ctx context.Context, run messages.Ref) error {
	if err := run.Check(); err != nil {
		return err
	}
	if err := tq.tasks().Of(run).Clear(ctx, run.DelaySubject()); err != nil { // first: it may fire meanwhile
		return err
	}
	return tq.tasks().Of(run).Clear(ctx, run.QueuedFilter())
}
