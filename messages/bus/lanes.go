package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
)

const (
	lanePrefix = "lane_"
	// Room for lanes in the stream. Each is a consumer: some kilobytes of the server's memory.
	maxLanes = 10_000
	// A lane that nobody took from for so long is removed by the server, once nothing of it is in hand. Whoever comes to
	// take from it next makes it again.
	laneIdle = 10 * time.Minute
	// How many empty lanes make room when there is none left.
	laneRoom = 100
	// How many lanes one call of RepairLanes makes, and how many strays it finds.
	maxMended = 1000
	maxStrays = 100
)

// ErrLanesFull means that a tenant's tasks wait because the stream has no room for another lane.
var ErrLanesFull = errors.New("no room for another lane: " + strconv.Itoa(maxLanes) + " have tasks")

// laneConsumer is the name of the consumer behind a lane.
func laneConsumer(l queue.Lane) string {
	if l.Wakes() {
		return ConsumerWorkers
	}
	return lanePrefix + string(l.Priority) + "_" + l.Tenant
}

// laneOfConsumer undoes laneConsumer.
func laneOfConsumer(name string) (queue.Lane, bool) {
	if name == ConsumerWorkers {
		return queue.WakeLane(), true
	}
	rest, ok := strings.CutPrefix(name, lanePrefix)
	priority, tenant, _ := strings.Cut(rest, "_")
	l, valid := queue.LaneOf(messages.Priority(priority), tenant)
	return l, ok && valid && !l.Wakes()
}

// laneConfig is the consumer behind a lane.
func laneConfig(l queue.Lane, ackWait time.Duration) jetstream.ConsumerConfig {
	c := jetstream.ConsumerConfig{
		Durable: laneConsumer(l), Name: laneConsumer(l), Description: "A tenant's tasks at a priority.",
		DeliverPolicy: jetstream.DeliverAllPolicy, AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxDeliver: -1,
		MaxAckPending: maxAckPending,
	}
	if l.Wakes() {
		c.Description = "Wake-ups and errands, and what names no run."
		c.FilterSubjects = []string{"lanes.wake.>", "tasks.>"} // tasks: what the transform left
	} else {
		c.FilterSubject, c.InactiveThreshold = l.Filter(), laneIdle
	}
	return c
}

// LaneState is a lane as the server counts it.
type LaneState struct {
	Lane     queue.Lane
	Queued   int       // messages that were given to nobody
	InFlight int       // messages that were given to somebody, and not acked
	Active   time.Time // when one was given last, or the lane was made

	ackWait time.Duration
	given   uint64 // sequence of the last one
}

// Lanes are all lanes that the stream has, in no order. Answered by the server that leads.
func (b *Bus) Lanes(ctx context.Context) ([]LaneState, error) {
	var lanes []LaneState
	for offset := 0; ; {
		var page struct {
			Total     int `json:"total"`
			Consumers []struct {
				Name     string    `json:"name"`
				Created  time.Time `json:"created"`
				Queued   int       `json:"num_pending"`
				InFlight int       `json:"num_ack_pending"`
				Given    struct {
					Seq  uint64     `json:"stream_seq"`
					Last *time.Time `json:"last_active"`
				} `json:"delivered"`
				Config struct {
					AckWait time.Duration `json:"ack_wait"`
				} `json:"config"`
			} `json:"consumers"`
		}
		err := b.Call(ctx, "CONSUMER.LIST."+StreamTasks, struct {
			Offset int `json:"offset"`
		}{offset}, &page)
		if err != nil {
			return nil, fmt.Errorf("list lanes: %w", err)
		}
		for _, c := range page.Consumers {
			l, ok := laneOfConsumer(c.Name)
			if !ok {
				continue // an operator's
			}
			s := LaneState{Lane: l, Queued: c.Queued, InFlight: c.InFlight, Active: c.Created, ackWait: c.Config.AckWait, given: c.Given.Seq}
			if c.Given.Last != nil {
				s.Active = *c.Given.Last
			}
			lanes = append(lanes, s)
		}
		offset += len(page.Consumers)
		if len(page.Consumers) == 0 || offset >= page.Total {
			return lanes, nil
		}
	}
}

// Oldest is when the first message was stored that a lane gave to nobody yet; ok is false when there is none.
func (b *Bus) Oldest(ctx context.Context, s LaneState) (at time.Time, ok bool, err error) {
	filter := s.Lane.Filter()
	if s.Lane.Wakes() {
		filter = "lanes.wake.>"
	}
	m, ok, err := b.Get(ctx, StreamTasks, Lookup{Seq: s.given + 1, Next: filter})
	return m.Time, ok, err
}

// MakeLane makes a lane, unless it is there. ErrLanesFull: there is no room, and no empty lane that could be removed.
func (b *Bus) MakeLane(ctx context.Context, l queue.Lane, ackWait time.Duration) error {
	err := b.makeLane(ctx, l, ackWait)
	if Refused(err, codeMaxConsumers) {
		if err := b.makeRoom(ctx); err != nil {
			return err
		}
		err = b.makeLane(ctx, l, ackWait)
	}
	switch {
	case Refused(err, codeMaxConsumers):
		return ErrLanesFull
	case Refused(err, codeOverlap):
		return fmt.Errorf("make lane %s: %w (a dispatcher of this version changes consumer %s: start one)", l, err, ConsumerWorkers)
	case err != nil:
		return fmt.Errorf("make lane %s: %w", l, err)
	default:
		return nil
	}
}

func (b *Bus) makeLane(ctx context.Context, l queue.Lane, ackWait time.Duration) error {
	config := laneConfig(l, ackWait)
	subject := "CONSUMER.CREATE." + StreamTasks + "." + config.Name
	if config.FilterSubject != "" {
		subject += "." + config.FilterSubject
	}
	err := b.Call(ctx, subject, struct {
		Stream string                   `json:"stream_name"`
		Config jetstream.ConsumerConfig `json:"config"`
		Action string                   `json:"action"`
	}{StreamTasks, config, "create"}, nil)
	if Refused(err, codeConsumerExists) { // with another ack wait, which Setup sets
		return nil
	}
	return err
}

// makeRoom removes the empty lanes that nobody has used for longest.
func (b *Bus) makeRoom(ctx context.Context) error {
	all, err := b.Lanes(ctx)
	if err != nil {
		return err
	}
	empty := slices.DeleteFunc(all, func(s LaneState) bool { return s.Queued+s.InFlight > 0 || s.Lane.Wakes() })
	slices.SortFunc(empty, func(x, y LaneState) int { return x.Active.Compare(y.Active) })
	for _, s := range empty[:min(laneRoom, len(empty))] {
		err := b.Call(ctx, "CONSUMER.DELETE."+StreamTasks+"."+laneConsumer(s.Lane), nil, nil)
		if err != nil && !Refused(err, codeNoConsumer) {
			return fmt.Errorf("remove an empty lane: %w", err)
		}
	}
	return nil
}

// RepairLanes makes lanes for messages in the queue that have none, a thousand at most, and returns them. It reads the
// subjects of all that is queued. Strays are messages whose priority or tenant is none, for which there is no lane.
func (b *Bus) RepairLanes(ctx context.Context, ackWait time.Duration) (made []queue.Lane, strays []Queued, err error) {
	all, err := b.Lanes(ctx)
	if err != nil {
		return nil, nil, err
	}
	known := map[queue.Lane]bool{}
	for _, s := range all {
		known[s.Lane] = true
	}
	for subject, err := range b.Subjects(ctx, StreamTasks, "lanes.*.*.*.*") {
		if err != nil {
			return made, strays, fmt.Errorf("list what is queued: %w", err)
		}
		t := strings.Split(subject, ".")
		l, ok := queue.LaneOf(messages.Priority(t[1]), t[3])
		switch {
		case ok && known[l]:
		case ok:
			if err := b.MakeLane(ctx, l, ackWait); err != nil {
				return made, strays, err
			}
			known[l] = true
			made = append(made, l)
		case len(strays) < maxStrays:
			if q, ok, err := b.stray(ctx, Lookup{Last: subject}); err == nil && ok {
				strays = append(strays, q)
			}
		}
		if len(made) == maxMended {
			break
		}
	}
	return made, strays, nil
}

// Unroutable is the message of a sequence, if it is in the queue and its priority or tenant is none: no lane has it.
func (b *Bus) Unroutable(ctx context.Context, seq uint64) (q Queued, ok bool, err error) {
	return b.stray(ctx, Lookup{Seq: seq})
}

func (b *Bus) stray(ctx context.Context, at Lookup) (q Queued, ok bool, err error) {
	m, ok, err := b.Get(ctx, StreamTasks, at)
	if err != nil || !ok {
		return Queued{}, false, err
	}
	t := strings.Split(m.Subject, ".")
	if len(t) != 5 || t[0] != "lanes" {
		return Queued{}, false, nil
	}
	_, laned := queue.LaneOf(messages.Priority(t[1]), t[3])
	return Queued{Subject: m.Subject, Body: m.Data, At: m.Time, Seq: m.Seq}, !laned, nil
}

// Discard removes a stray from the queue, if it is there.
func (b *Bus) Discard(ctx context.Context, q Queued) error {
	return b.Retry(ctx, func(ctx context.Context) error { return b.remove(ctx, q.Seq) })
}

// remove is one attempt to remove a message from the queue. That it is gone is a success.
func (b *Bus) remove(ctx context.Context, seq uint64) error {
	err := b.callOnce(ctx, "STREAM.MSG.DELETE."+StreamTasks, struct {
		Seq uint64 `json:"seq"`
	}{seq}, nil)
	if Refused(err, codeNoMessage) || Refused(err, codeNotDeleted) {
		return nil
	}
	return err
}

// withUnmade adds what is queued and has no lane: workers make lanes, and the server removes those that nobody takes from,
// so without a worker a queue would look empty. The subjects are read only when there are more messages than the lanes have.
func (b *Bus) withUnmade(ctx context.Context, lanes []LaneState) ([]LaneState, error) {
	const queued = "lanes.*.*.*.*"
	total, err := b.pending(ctx, StreamTasks, queued)
	if err != nil {
		return nil, fmt.Errorf("count what is queued: %w", err)
	}
	made := map[queue.Lane]bool{}
	for _, s := range lanes {
		made[s.Lane] = true
		total -= s.Queued + s.InFlight
	}
	if total <= 0 {
		return lanes, nil
	}
	unmade := map[queue.Lane]int{}
	for subject, err := range b.Subjects(ctx, StreamTasks, queued) {
		if err != nil {
			return nil, fmt.Errorf("list what is queued: %w", err)
		}
		t := strings.Split(subject, ".")
		if l, ok := queue.LaneOf(messages.Priority(t[1]), t[3]); ok && !made[l] {
			unmade[l]++
		}
	}
	for l, n := range unmade {
		lanes = append(lanes, LaneState{Lane: l, Queued: n})
	}
	return lanes, nil
}

// LaneList is what people see of the lanes: wake-ups first, then by priority, the fullest first.
func (b *Bus) LaneList(ctx context.Context, req control.LanesRequest) (*control.LaneList, error) {
	all, err := b.Lanes(ctx)
	if err != nil {
		return nil, err
	}
	if all, err = b.withUnmade(ctx, all); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(s LaneState) bool {
		return req.Tenant != "" && s.Lane.Tenant != req.Tenant || !req.All && s.Queued+s.InFlight == 0
	})
	order := []messages.Priority{queue.WakeLane().Priority, messages.PriorityHigh, messages.PriorityNormal, messages.PriorityLow}
	rank := func(p messages.Priority) int { return slices.Index(order, p) }
	slices.SortFunc(all, func(x, y LaneState) int {
		return cmp.Or(cmp.Compare(rank(x.Lane.Priority), rank(y.Lane.Priority)), cmp.Compare(y.Queued, x.Queued),
			cmp.Compare(y.InFlight, x.InFlight), cmp.Compare(x.Lane.Tenant, y.Lane.Tenant))
	})
	list := &control.LaneList{Lanes: []control.LaneStatus{}, More: len(all) > control.MaxLanes}
	for _, s := range all[:min(control.MaxLanes, len(all))] {
		status := control.LaneStatus{Tenant: s.Lane.Tenant, Priority: s.Lane.Priority, Queued: s.Queued, InFlight: s.InFlight}
		if s.Queued > 0 {
			at, ok, err := b.Oldest(ctx, s)
			if err != nil {
				return nil, fmt.Errorf("look at lane %s: %w", s.Lane, err)
			}
			if ok {
				status.Oldest = &at
			}
		}
		list.Lanes = append(list.Lanes, status)
	}
	return list, nil
}
