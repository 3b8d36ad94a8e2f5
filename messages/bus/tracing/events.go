package tracing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

const (
	tracesFetched  = 128 // at once: what they become is one request to a collector
	tracesFetch    = 5 * time.Second
	tracesTake     = 45 * time.Second // bounds what is made of one fetch
	tracesAckWait  = 2 * tracesTake
	tracesPause    = 200 * time.Millisecond // after a failure, and twice as long after the next
	tracesMaxPause = 30 * time.Second
	tracesPending  = 2048 // handed out and not acked: with a collector that is down no more than this comes again and again
)

// Consumer is the consumer of EVENTS that all exporters of traces share, or one in each of its streams. Its position is kept by the server, from
// when it was first made.
type Consumer struct {
	parts []*part
}

// part is the consumer in one stream.
type part struct {
	bus    *bus.Bus
	stream string
	names  []string
	cons   jetstream.Consumer
	turn   *sync.Mutex // of all
}

// Event is an event for Traces.
type Event struct {
	messages.Event

	Run       messages.Ref
	Stored    time.Time // by the server's clock
	Delivered int       // how often it was handed out, from 1
}

// Open makes the consumer, or finds it: of the events with these names, those that are stored from now on.
func (q *Queue) Open(ctx context.Context, names ...string) (*Consumer, error) {
	c, turn := &Consumer{}, &sync.Mutex{}
	for _, stream := range q.bus.Partitions(bus.StreamEvents).Names() {
		t := &part{bus: q.bus, stream: stream, names: names, turn: turn}
		if err := t.make(ctx); err != nil {
			return nil, err
		}
		c.parts = append(c.parts, t)
	}
	return c, nil
}

func (t *part) make(ctx context.Context) error {
	js, err := bus.NewJetStream(t.bus.Conn())
	if err != nil {
		return err
	}
	var filters []string
	for _, name := range append(slices.Clip(t.names), messages.NameBundle) {
		filters = append(filters, "events.*.*."+name)
	}
	cons, err := js.CreateOrUpdateConsumer(ctx, t.stream, jetstream.ConsumerConfig{
		Durable: bus.ConsumerTraces, FilterSubjects: filters, DeliverPolicy: jetstream.DeliverNewPolicy,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: tracesAckWait, MaxDeliver: -1, MaxAckPending: tracesPending,
	})
	if err != nil {
		return fmt.Errorf("create consumer %s: %w", bus.ConsumerTraces, err)
	}
	t.cons = cons
	return nil
}

// Run hands events to take, each at least once and to one process at a time, until ctx ends. What take returns are the
// places of those that must come again; with an error all do, later the longer that lasts. It is called once at a time.
func (c *Consumer) Run(ctx context.Context, take func(context.Context, []Event) (again []int, err error)) {
	var running sync.WaitGroup
	for _, t := range c.parts {
		running.Go(func() { t.run(ctx, take) })
	}
	running.Wait()
}

func (t *part) run(ctx context.Context, take func(context.Context, []Event) (again []int, err error)) {
	failures := 0
	for ctx.Err() == nil {
		if t.next(ctx, take) {
			failures = 0
			continue
		}
		failures++
		_ = bus.Pause(ctx, min(tracesPause<<min(failures-1, 8), tracesMaxPause)) // cut short by the end of ctx
		if _, err := t.cons.Info(ctx); errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
			_ = t.make(ctx) // what this needs may be missing too: it is tried again
		}
	}
}

// next takes the events that are there, and waits for the first. It is false when the server was no help, or they could
// not be taken.
func (t *part) next(ctx context.Context, take func(context.Context, []Event) ([]int, error)) bool {
	var msgs []jetstream.Msg
	err := t.fetch(ctx, &msgs, func(ctx context.Context) (jetstream.MessageBatch, error) {
		return t.cons.Fetch(1, jetstream.FetchContext(ctx))
	})
	t.turn.Lock()
	defer t.turn.Unlock()
	if err == nil && len(msgs) > 0 {
		err = t.fetch(ctx, &msgs, func(context.Context) (jetstream.MessageBatch, error) {
			return t.cons.FetchNoWait(tracesFetched - 1)
		})
	}
	if err != nil && ctx.Err() == nil {
		t.bus.Log().WarnContext(ctx, "look for events to trace", "err", err)
	}
	events, of := t.read(msgs)
	if len(events) == 0 {
		return err == nil
	}
	bounded, cancel := context.WithTimeout(ctx, tracesTake)
	defer cancel()
	again, err := take(bounded, events)
	if err != nil && ctx.Err() == nil {
		t.bus.Log().WarnContext(ctx, "export traces", "err", err, "events", len(events))
	}
	later := map[jetstream.Msg]bool{}
	for _, i := range again {
		if m := of[i]; !later[m] { // a bundle comes again as a whole
			later[m] = true
			_ = m.NakWithDelay(time.Second) // without it the event comes again after the ack wait
		}
	}
	for _, m := range slices.Compact(of) {
		switch {
		case later[m]:
		case err != nil:
			_ = m.Nak()
		default:
			_ = m.Ack() // without it the event comes again, and becomes the same span
		}
	}
	return err == nil
}

func (t *part) fetch(ctx context.Context, msgs *[]jetstream.Msg, ask func(context.Context) (jetstream.MessageBatch, error)) error {
	ctx, cancel := context.WithTimeout(ctx, tracesFetch)
	defer cancel()
	batch, err := ask(ctx)
	if err != nil {
		return err
	}
	for m := range batch.Messages() {
		*msgs = append(*msgs, m)
	}
	if err := batch.Error(); err != nil && !errors.Is(err, nats.ErrTimeout) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// read keeps what is an event of ours with one of the names, and the message of each.
func (t *part) read(msgs []jetstream.Msg) (events []Event, of []jetstream.Msg) {
	for _, m := range msgs {
		meta, err := m.Metadata()
		if err != nil {
			continue // it is no message of a consumer
		}
		before := len(events)
		if !t.bus.Partitions(bus.StreamEvents).OwnsSubject(t.stream, m.Subject()) {
			_ = m.Ack() // it counts for nothing
			continue
		}
		for e := range t.bus.Each(bus.Message{Subject: m.Subject(), Data: m.Data()}) {
			if slices.Contains(t.names, e.Name()) {
				events = append(events, Event{e, e.Ref(), meta.Timestamp, int(meta.NumDelivered)})
				of = append(of, m)
			}
		}
		if len(events) == before {
			_ = m.Ack()
		}
	}
	return events, of
}
