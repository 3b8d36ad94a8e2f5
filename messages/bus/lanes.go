package bus

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
)

const (
	lanePrefix = "lane_"
	// MaxLanes is the room for lanes in the stream. Each is a consumer: some kilobytes of the server's memory.
	MaxLanes = 10_000
	// The server removes a lane from which no worker took for so long, once nothing of it is in hand. The next worker
	// that takes from it makes it again.
	laneIdle = 10 * time.Minute
)

// LaneConsumer is the name of the consumer behind a lane.
func LaneConsumer(l queue.Lane) string {
	if l.Wakes() {
		return ConsumerWorkers
	}
	return lanePrefix + string(l.Priority) + "_" + l.Tenant
}

// LaneOfConsumer undoes LaneConsumer.
func LaneOfConsumer(name string) (queue.Lane, bool) {
	if name == ConsumerWorkers {
		return queue.WakeLane(), true
	}
	rest, ok := strings.CutPrefix(name, lanePrefix)
	priority, tenant, _ := strings.Cut(rest, "_")
	l, valid := queue.LaneOf(messages.Priority(priority), tenant)
	return l, ok && valid && !l.Wakes()
}

// LaneConfig is the consumer behind a lane in one of so many partitions.
func LaneConfig(l queue.Lane, partitions int, ackWait time.Duration) jetstream.ConsumerConfig {
	c := jetstream.ConsumerConfig{
		Durable: LaneConsumer(l), Name: LaneConsumer(l), Description: "A tenant's tasks at a priority.",
		DeliverPolicy: jetstream.DeliverAllPolicy, AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxDeliver: -1,
		MaxAckPending: maxAckPending,
	}
	if l.Wakes() {
		c.Description = "Wake-ups and errands, and what names no run."
		c.FilterSubjects = []string{"lanes.wake.>", tasksPrefix + ">"} // tasks: what the transform left
		if partitions > 1 {                                            // and what it leaves there, because a token is a wildcard
			c.FilterSubjects = append(c.FilterSubjects, PartitionSubject(">", l.Partition, partitions))
		}
	} else {
		c.FilterSubject, c.InactiveThreshold = l.Filter(), laneIdle
	}
	return c
}

// LaneState is a lane of one partition as the server counts it.
type LaneState struct {
	Lane     queue.Lane
	Queued   int       // messages that were not given to a worker
	InFlight int       // messages that were given to a worker, and not acked
	Active   time.Time // when one was given last, or the lane was made

	AckWait time.Duration // without a sign of life a message is delivered again
	Given   uint64        // sequence of the last one that was given
}

// Lanes are all lanes that the queue has, of each partition, in no order. Answered by the servers that lead.
func (b *Bus) Lanes(ctx context.Context) ([]LaneState, error) {
	var all []LaneState
	for i := range b.Partitions(StreamTasks).Number() {
		lanes, err := b.lanesIn(ctx, i)
		if err != nil {
			return nil, err
		}
		all = append(all, lanes...)
	}
	return all, nil
}

func (b *Bus) lanesIn(ctx context.Context, partition int) ([]LaneState, error) {
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
		err := b.Call(ctx, "CONSUMER.LIST."+b.Partitions(StreamTasks).Name(partition), struct {
			Offset int `json:"offset"`
		}{offset}, &page)
		if err != nil {
			return nil, fmt.Errorf("list lanes: %w", err)
		}
		for _, c := range page.Consumers {
			l, ok := LaneOfConsumer(c.Name)
			if !ok {
				continue // an operator's
			}
			l.Partition = partition
			s := LaneState{Lane: l, Queued: c.Queued, InFlight: c.InFlight, Active: c.Created, AckWait: c.Config.AckWait, Given: c.Given.Seq}
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
