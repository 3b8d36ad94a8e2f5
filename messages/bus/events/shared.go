package events

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

const (
	sharedFetched = 256
	sharedAckWait = 30 * time.Second // to take an event is to count it
	// Delivered events that are not acknowledged yet, of all who share. Beyond it no more are delivered.
	sharedPending = 4096
	// Events share an acknowledgement: one for each costs the server as much as to deliver it. At most so many do, and those that come
	// within so long.
	sharedTogether = 64
	sharedWithin   = 100 * time.Millisecond
)

// Shared are the events of all runs, for processes that share the work: each event is handed to one of them.
type Shared struct {
	in      bus.Partitions
	pullers []*bus.Puller // one for each stream
	cons    []jetstream.Consumer
}

// Share makes the durable consumer of that name, unless it is there. Who makes it gets the events that are
// published from then on: events before that were not missed. The position is the server's and stays when all who
// share are gone. A consumer of an older version, whose events are acknowledged one by one, is replaced by one that begins with new events.
func (st *Store) Share(ctx context.Context, name string) (*Shared, error) {
	s := &Shared{in: st.bus.Partitions(bus.StreamEvents)}
	for _, stream := range s.in.Names() {
		p := &bus.Puller{
			Bus: st.bus, Stream: stream, Most: sharedFetched,
			Config: jetstream.ConsumerConfig{
				Durable: name, DeliverPolicy: jetstream.DeliverNewPolicy, AckPolicy: jetstream.AckAllPolicy,
				AckWait: sharedAckWait, MaxDeliver: -1, MaxAckPending: sharedPending,
			},
		}
		cons, err := p.Consumer(ctx)
		if bus.Refused(err, bus.CodeConsumerDiffers) {
			if err := st.bus.Call(ctx, "CONSUMER.DELETE."+stream+"."+name, nil, nil); err != nil && !bus.Refused(err, bus.CodeNoConsumer) {
				return nil, fmt.Errorf("replace consumer %s: %w", name, err)
			}
			cons, err = p.Consumer(ctx)
		}
		if err != nil {
			return nil, err
		}
		s.pullers, s.cons = append(s.pullers, p), append(s.cons, cons)
	}
	return s, nil
}

// Run hands events to take until ctx ends, those of a bundle one by one; it is called for one at a time. Events are acknowledged together after take has returned for the last of
// them, at the latest when the fetch that brought them ends, after 5 s. One who is killed before that leaves them to another: again says that an event was delivered
// before and may have been processed. Where several share, an acknowledgement is also for the older events that others have in hand: of
// those who are killed then, these are lost, at most 256 each of each stream. What is not an event of its subject's run is counted and passed over.
func (s *Shared) Run(ctx context.Context, take func(e messages.Event, again bool)) error {
	var one sync.Mutex
	var following sync.WaitGroup
	for i, of := range s.pullers {
		p := *of // several may run at once
		p.Take = s.takes(&p, &one, take)
		following.Go(func() { p.Follow(ctx, s.cons[i]) })
	}
	following.Wait()
	return nil
}

// takes is how the messages of one stream are taken.
func (s *Shared) takes(p *bus.Puller, one *sync.Mutex, take func(e messages.Event, again bool)) func(context.Context, <-chan jetstream.Msg) bool {
	return func(ctx context.Context, msgs <-chan jetstream.Msg) bool {
		var last jetstream.Msg // that is not acknowledged
		var acked time.Time
		n := 0
		ack := func() {
			if last == nil {
				return
			}
			if err := last.Ack(); err != nil {
				p.Bus.Log().DebugContext(ctx, "ack events", "consumer", p.Config.Durable, "err", err) // they come again
			}
			last, n, acked = nil, 0, time.Now()
		}
		defer ack()
		for m := range msgs {
			meta, err := m.Metadata()
			if s.in.OwnsSubject(p.Stream, m.Subject()) {
				one.Lock()
				for e := range p.Bus.Each(bus.Message{Subject: m.Subject(), Data: m.Data()}) {
					take(e, err == nil && meta.NumDelivered > 1)
				}
				one.Unlock()
			}
			last = m
			if n++; n == sharedTogether || time.Since(acked) > sharedWithin {
				ack()
			}
		}
		return true
	}
}
