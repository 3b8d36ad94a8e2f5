package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
)

// ConsumerMetrics is the consumer of EVENTS that all dispatchers share to count each event in one of them.
const ConsumerMetrics = "metrics"

const (
	sharedFetched = 256
	sharedFetch   = 5 * time.Second
	sharedAckWait = 30 * time.Second // to take an event is to count it
	// Events that were handed out and are not acknowledged yet, by all who share. Beyond it nobody gets more.
	sharedPending = 4096
)

// SharedEvents are the events of all runs, for processes that share the work: each event is handed to one of them.
type SharedEvents struct {
	bus  *Bus
	name string
	js   jetstream.JetStream
}

// ShareEvents makes the durable consumer of that name, unless it is there. Who makes it gets the events that are
// published from then on: what was before that nobody has missed. The position is the server's and stays when all who
// share are gone.
func (b *Bus) ShareEvents(ctx context.Context, name string) (*SharedEvents, error) {
	js, err := newJetStream(b.nc)
	if err != nil {
		return nil, err
	}
	s := &SharedEvents{bus: b, name: name, js: js}
	if _, err := s.consumer(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *SharedEvents) consumer(ctx context.Context) (jetstream.Consumer, error) {
	c, err := s.js.CreateOrUpdateConsumer(ctx, StreamEvents, jetstream.ConsumerConfig{
		Durable: s.name, DeliverPolicy: jetstream.DeliverNewPolicy, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: sharedAckWait, MaxDeliver: -1, MaxAckPending: sharedPending,
	})
	if err != nil {
		return nil, fmt.Errorf("create consumer %s: %w", s.name, err)
	}
	return c, nil
}

// Run hands events to take until ctx ends; one goroutine calls it. Each event is acknowledged when take returns, so who
// is killed between the two leaves it to another one: again says that somebody had it before and may have taken it. What is not
// an event of its subject's run is counted and passed over.
func (s *SharedEvents) Run(ctx context.Context, take func(e messages.Event, again bool)) error {
	for ctx.Err() == nil {
		if err := s.follow(ctx, take); err != nil && ctx.Err() == nil {
			s.bus.log.WarnContext(ctx, "take events", "consumer", s.name, "err", err)
			_ = pause(ctx, endsPause) // cut short by the end of ctx
		}
	}
	return nil
}

// follow takes what comes until something fails. The consumer is made again: somebody may have removed it.
func (s *SharedEvents) follow(ctx context.Context, take func(messages.Event, bool)) error {
	cons, err := s.consumer(ctx)
	for err == nil && ctx.Err() == nil {
		err = s.next(ctx, cons, take)
	}
	return err
}

func (s *SharedEvents) next(ctx context.Context, cons jetstream.Consumer, take func(messages.Event, bool)) error {
	fetch, cancel := context.WithTimeout(ctx, sharedFetch)
	defer cancel()
	batch, err := cons.Fetch(sharedFetched, jetstream.FetchContext(fetch))
	if err != nil {
		return err //nolint:wrapcheck // Run says what it did
	}
	for m := range batch.Messages() {
		if e, ok := s.bus.event(stored{subject: m.Subject(), data: m.Data()}); ok {
			meta, err := m.Metadata()
			take(e, err == nil && meta.NumDelivered > 1)
		}
		if err := m.Ack(); err != nil {
			s.bus.log.DebugContext(ctx, "ack an event", "consumer", s.name, "err", err) // it comes again
		}
	}
	err = batch.Error()
	if errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err //nolint:wrapcheck // Run says what it did
}
