package taskqueue

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/queue"
)

const (
	// How many empty lanes make room when there is none left.
	laneRoom = 100
	// How many lanes one call of RepairLanes makes, and how many unroutable messages it finds.
	maxRepaired   = 1000
	maxUnroutable = 100
)

// ErrLanesFull means that a tenant's tasks wait because the stream has no room for another lane.
var ErrLanesFull = errors.New("there is no room for another lane: " + strconv.Itoa(bus.MaxLanes) + " have tasks")

// MakeLane makes a lane, unless it is there. ErrLanesFull: there is no room, and no empty lane that could be removed.
func (tq *Queue) MakeLane(ctx context.Context, l queue.Lane, ackWait time.Duration) error {
	err := tq.makeLane(ctx, l, ackWait)
	if bus.Refused(err, bus.CodeMaxConsumers) {
		if err := tq.makeRoom(ctx, l.Partition); err != nil {
			return err
		}
		err = tq.makeLane(ctx, l, ackWait)
	}
	switch {
	case bus.Refused(err, bus.CodeMaxConsumers):
		return ErrLanesFull
	case bus.Refused(err, bus.CodeOverlap):
		return fmt.Errorf("make lane %s: %w (a dispatcher of this version changes consumer %s: start one)", l, err, bus.ConsumerWorkers)
	case err != nil:
		return fmt.Errorf("make lane %s: %w", l, err)
	default:
		return nil
	}
}

func (tq *Queue) makeLane(ctx context.Context, l queue.Lane, ackWait time.Duration) error {
	config := bus.LaneConfig(l, tq.tasks().Number(), ackWait)
	stream := tq.tasks().Name(l.Partition)
	subject := "CONSUMER.CREATE." + stream + "." + config.Name
	if config.FilterSubject != "" {
		subject += "." + config.FilterSubject
	}
	err := tq.bus.Call(ctx, subject, struct {
		Stream string                   `json:"stream_name"`
		Config jetstream.ConsumerConfig `json:"config"`
		Action string                   `json:"action"`
	}{stream, config, "create"}, nil)
	if bus.Refused(err, bus.CodeConsumerExists) { // with another ack wait, which Setup sets
		return nil
	}
	return err
}

// makeRoom removes the empty lanes of a partition that have been unused for longest.
func (tq *Queue) makeRoom(ctx context.Context, partition int) error {
	all, err := tq.bus.Lanes(ctx)
	if err != nil {
		return err
	}
	empty := slices.DeleteFunc(all, func(s bus.LaneState) bool {
		return s.Queued+s.InFlight > 0 || s.Lane.Wakes() || s.Lane.Partition != partition
	})
	slices.SortFunc(empty, func(x, y bus.LaneState) int { return x.Active.Compare(y.Active) })
	for _, s := range empty[:min(laneRoom, len(empty))] {
		err := tq.bus.Call(ctx, "CONSUMER.DELETE."+tq.tasks().Name(partition)+"."+bus.LaneConsumer(s.Lane), nil, nil)
		if err != nil && !bus.Refused(err, bus.CodeNoConsumer) {
			return fmt.Errorf("remove an empty lane: %w", err)
		}
	}
	return nil
}

// RepairLanes makes lanes for messages in the queue that have none, a thousand at most, and returns them. It reads the
// subjects of all that is queued. Unroutable are messages whose priority or tenant is none, for which there is no lane.
func (tq *Queue) RepairLanes(ctx context.Context, ackWait time.Duration) (made []queue.Lane, unroutable []Queued, err error) {
	all, err := tq.bus.Lanes(ctx)
	if err != nil {
		return nil, nil, err
	}
	known := map[queue.Lane]bool{}
	for _, s := range all {
		known[s.Lane] = true
	}
	for at, err := range tq.queuedSubjects(ctx) {
		if err != nil {
			return made, unroutable, fmt.Errorf("list what is queued: %w", err)
		}
		l, ok := at.lane()
		switch {
		case ok && known[l]:
		case ok:
			if err := tq.MakeLane(ctx, l, ackWait); err != nil {
				return made, unroutable, err
			}
			known[l] = true
			made = append(made, l)
		case len(unroutable) < maxUnroutable:
			if q, ok, err := tq.unroutable(ctx, at.partition, bus.Lookup{Last: at.subject}); err == nil && ok {
				unroutable = append(unroutable, q)
			}
		}
		if len(made) == maxRepaired {
			break
		}
	}
	return made, unroutable, nil
}

// queuedAt is a subject that a partition has a message of.
type queuedAt struct {
	partition int
	subject   string
}

func (at queuedAt) lane() (queue.Lane, bool) {
	t := strings.Split(at.subject, ".")
	l, ok := queue.LaneOf(messages.Priority(t[1]), t[3])
	return l.In(at.partition), ok
}

// queuedSubjects yields the subjects of all that is queued. An error ends it.
func (tq *Queue) queuedSubjects(ctx context.Context) iter.Seq2[queuedAt, error] {
	return func(yield func(queuedAt, error) bool) {
		for i := range tq.tasks().Number() {
			for subject, err := range tq.tasks().At(i).Subjects(ctx, allQueued) {
				if !yield(queuedAt{i, subject}, err) {
					return
				}
			}
		}
	}
}

// Unroutable is the message of a sequence in a partition, if it is in the queue and its priority or tenant is none: no lane has it.
func (tq *Queue) Unroutable(ctx context.Context, partition int, seq uint64) (q Queued, ok bool, err error) {
	return tq.unroutable(ctx, partition, bus.Lookup{Seq: seq})
}

func (tq *Queue) unroutable(ctx context.Context, partition int, at bus.Lookup) (q Queued, ok bool, err error) {
	m, ok, err := tq.tasks().At(partition).Get(ctx, at)
	if err != nil || !ok {
		return Queued{}, false, err
	}
	t := strings.Split(m.Subject, ".")
	if len(t) != 5 || t[0] != "lanes" {
		return Queued{}, false, nil
	}
	_, laned := queue.LaneOf(messages.Priority(t[1]), t[3])
	return Queued{Subject: m.Subject, Body: m.Data, At: m.Time, Seq: m.Seq, Partition: partition}, !laned, nil
}

// Discard removes an unroutable message from the queue, if it is there.
func (tq *Queue) Discard(ctx context.Context, q Queued) error {
	return tq.remove(ctx, tq.tasks().Name(q.Partition), q.Seq)
}

// remove removes a message from the queue. That it is gone is a success.
func (tq *Queue) remove(ctx context.Context, stream string, seq uint64) error {
	err := tq.bus.Call(ctx, "STREAM.MSG.DELETE."+stream, struct {
		Seq uint64 `json:"seq"`
	}{seq}, nil)
	if bus.Refused(err, bus.CodeNoMessage) || bus.Refused(err, bus.CodeNotDeleted) {
		return nil
	}
	return err
}
