// Package taskqueue is the queue of tasks: lanes, the workers' deliveries, wake-ups, timers and what goes with them.
package taskqueue

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/deadletters"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

// Queue has the tasks that wait for workers, and the messages by which their runs continue. Safe for concurrent use.
type Queue struct {
	bus    *bus.Bus
	unmade unmade
}

// New returns the queue that a bus holds.
func New(b *bus.Bus) *Queue { return &Queue{bus: b} }

// tasks are the streams of the queue.
func (tq *Queue) tasks() bus.Partitions { return tq.bus.Partitions(bus.StreamTasks) }

var _ runlog.Queue = (*Queue)(nil)

// Wake implements runlog.Queue. It never expects an empty subject: the wake-up must be stored although the ticket
// that parked is still there.
func (tq *Queue) Wake(ctx context.Context, run messages.Ref, after uint64) error {
	if err := run.Check(); err != nil {
		return err
	}
	body, err := json.Marshal(messages.Wake{After: after})
	if err != nil {
		return fmt.Errorf("encode wake-up: %w", err)
	}
	id := run.MsgID() + "." + strconv.FormatUint(after, 10)
	_, err = tq.bus.Store(ctx, &nats.Msg{Subject: tq.tasks().Subject(run, run.WakeSubject()), Header: nats.Header{bus.HeaderMsgID: {id}}, Data: body})
	return err
}

// Timer implements runlog.Queue.
func (tq *Queue) Timer(ctx context.Context, run messages.Ref, park uint64, at time.Time) error {
	w := messages.Wake{After: park, Errand: messages.ErrandTimer}
	return tq.schedule(ctx, run, run.TimerSubject(park), at, w)
}

// CancelTimer removes the timer of a park, if it has not fired.
func (tq *Queue) CancelTimer(ctx context.Context, run messages.Ref, park uint64) error {
	if err := run.Check(); err != nil {
		return err
	}
	return tq.tasks().Of(run).Clear(ctx, run.TimerSubject(park))
}

// Net implements runlog.Queue.
func (tq *Queue) Net(ctx context.Context, run messages.Ref, control string, at time.Time) error {
	if !strict.ValidToken(control) {
		return &messages.FieldError{Field: "control", Reason: "must be a token"}
	}
	return tq.schedule(ctx, run, run.NetSubject(control), at, messages.Wake{Errand: messages.ErrandNet})
}

// Learn publishes the errand that tells long-term memory of a rating, under an id: it is stored once for that.
func (tq *Queue) Learn(ctx context.Context, run messages.Ref, id string, rating messages.Rating) error {
	if err := run.Check(); err != nil {
		return err
	}
	body, err := json.Marshal(messages.Wake{Errand: messages.ErrandLearn, Rating: &rating})
	if err != nil {
		return fmt.Errorf("encode errand: %w", err)
	}
	_, err = tq.bus.Store(ctx, &nats.Msg{Subject: tq.tasks().Subject(run, run.WakeSubject()), Header: nats.Header{bus.HeaderMsgID: {run.MsgID() + ".learn." + id}}, Data: body})
	return err
}

// schedule publishes an errand at a time, once per subject.
func (tq *Queue) schedule(ctx context.Context, run messages.Ref, subject string, at time.Time, w messages.Wake) error {
	if err := run.Check(); err != nil {
		return err
	}
	body, err := json.Marshal(w)
	if err != nil {
		return fmt.Errorf("encode errand: %w", err)
	}
	return tq.bus.StoreFirst(ctx, &nats.Msg{Subject: tq.tasks().Subject(run, subject), Data: body, Header: nats.Header{
		bus.HeaderSchedule:   {"@at " + at.UTC().Format(time.RFC3339Nano)},
		bus.HeaderScheduleTo: {tq.tasks().Subject(run, run.WakeSubject())},
	}})
}

// Holds implements runlog.Queue; the stream's leader answers.
func (tq *Queue) Holds(ctx context.Context, run messages.Ref, ticket uint64) (bool, error) {
	if ticket == 0 {
		return false, nil
	}
	_, ok, err := tq.tasks().Of(run).Get(ctx, bus.Lookup{Seq: ticket})
	return ok, err
}

// DeadLetter implements runlog.Queue, as deadletters.Store.PutTask says.
func (tq *Queue) DeadLetter(ctx context.Context, run messages.Ref, agent string, d messages.Dead) error {
	return deadletters.New(tq.bus).PutTask(ctx, run, agent, d)
}
