package events

import (
	"context"
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
)

// Shared are the events of all runs, for processes that share the work: each event is handed to one of them.
type Shared struct {
	puller bus.Puller

	cons jetstream.Consumer
}

// Share makes the durable consumer of that name, unless it is there. Who makes it gets the events that are
// published from then on: events before that were not missed. The position is the server's and stays when all who
// share are gone.
func (st *Store) Share(ctx context.Context, name string) (*Shared, error) {
	s := &Shared{puller: bus.Puller{
		Bus: st.bus, Stream: bus.StreamEvents, Most: sharedFetched,
		Config: jetstream.ConsumerConfig{
			Durable: name, DeliverPolicy: jetstream.DeliverNewPolicy, AckPolicy: jetstream.AckExplicitPolicy,
			AckWait: sharedAckWait, MaxDeliver: -1, MaxAckPending: sharedPending,
		},
	}}
	var err error
	s.cons, err = s.puller.Consumer(ctx)
	return s, err
}

// Run hands events to take until ctx ends; one goroutine calls it. Each event is acknowledged when take returns, so
// who is killed between the two leaves it to another one: again says that it was delivered before and may have been
// processed. What is not an event of its subject's run is counted and passed over.
func (s *Shared) Run(ctx context.Context, take func(e messages.Event, again bool)) error {
	p := s.puller // several may run at once
	p.Take = func(ctx context.Context, msgs <-chan jetstream.Msg) bool {
		for m := range msgs {
			if e, ok := s.puller.Bus.Event(bus.Message{Subject: m.Subject(), Data: m.Data()}); ok {
				meta, err := m.Metadata()
				take(e, err == nil && meta.NumDelivered > 1)
			}
			if err := m.Ack(); err != nil {
				s.puller.Bus.Log().DebugContext(ctx, "ack an event", "consumer", s.puller.Config.Durable, "err", err) // it comes again
			}
		}
		return true
	}
	p.Follow(ctx, s.cons)
	return nil
}
