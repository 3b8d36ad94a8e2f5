package bus

import (
	"context"
	"fmt"
	"time"
)

// Lag is how far a durable consumer is behind its stream.
type Lag struct {
	Messages int       // that were not handed out, or not acknowledged
	Oldest   time.Time // when the first of them was stored; zero without any
}

// Lag looks at a durable consumer. Ok is false when there is none of that name.
func (s Stream) Lag(ctx context.Context, consumer string) (l Lag, ok bool, err error) {
	var info struct {
		Pending   int `json:"num_pending"`
		Unsettled int `json:"num_ack_pending"`
		Floor     struct {
			Stream uint64 `json:"stream_seq"`
		} `json:"ack_floor"`
		Config struct {
			Filter string `json:"filter_subject"`
		} `json:"config"`
	}
	err = s.bus.Call(ctx, "CONSUMER.INFO."+s.name+"."+consumer, nil, &info)
	switch {
	case Refused(err, CodeNoConsumer):
		return Lag{}, false, nil
	case err != nil:
		return Lag{}, false, fmt.Errorf("look at consumer %s: %w", consumer, err)
	}
	l.Messages = info.Pending + info.Unsettled
	if l.Messages == 0 {
		return l, true, nil
	}
	filter := info.Config.Filter
	if filter == "" {
		filter = ">"
	}
	m, found, err := s.Get(ctx, Lookup{Seq: info.Floor.Stream + 1, Next: filter})
	if err != nil {
		return l, true, fmt.Errorf("look for the oldest of consumer %s: %w", consumer, err)
	}
	if found {
		l.Oldest = m.Time
	}
	return l, true, nil
}

// SharedConsumers are the names of the durable consumers that dispatchers share: metrics counts events, ends reacts to the
// ends of runs, webhooks delivers, traces makes spans, intake queues what tenants publish.
func SharedConsumers() []string {
	return []string{ConsumerMetrics, ConsumerEnds, ConsumerWebhooks, ConsumerTraces, ConsumerIntake}
}

// Lags are those of the SharedConsumers, by name, as far as they exist.
func (b *Bus) Lags(ctx context.Context) (map[string]Lag, error) {
	lags := map[string]Lag{}
	for _, name := range SharedConsumers() {
		stream := StreamEvents
		switch name {
		case ConsumerWebhooks:
			stream = StreamWebhooks
		case ConsumerIntake:
			stream = StreamIntake
		}
		l, ok, err := b.Partitions(stream).Lag(ctx, name)
		if err != nil {
			return nil, err
		}
		if ok {
			lags[name] = l
		}
	}
	return lags, nil
}
