package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/deadletters"
	"github.com/longshore-run/longshore/messages/strict"
)

const (
	// Bounds the webhooks that wait for their next attempt. Beyond it new ones wait too.
	maxWebhooksPending = 262_144
	webhookAck         = 5 * time.Second
)

// Put stores a job, unless one of its key waits already, or was stored within the last two minutes under the
// same number: 0 for the end itself, else what makes it due once more.
func (q *Queue) Put(ctx context.Context, j *messages.WebhookJob, again uint64) error {
	if err := j.Check(); err != nil {
		return err
	}
	body, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("encode webhook: %w", err)
	}
	if err := q.bus.CheckSize(body); err != nil {
		return err
	}
	id := fmt.Sprintf("%s.%d", j.ID, again)
	if err := q.bus.StoreFirst(ctx, &nats.Msg{Subject: j.Subject(), Header: nats.Header{bus.HeaderMsgID: {id}}, Data: body}); err != nil {
		return fmt.Errorf("store webhook of %s: %w", j.Name, err)
	}
	return nil
}

// Delivery is a job whose turn it is.
type Delivery struct {
	messages.WebhookJob
	Queued    time.Time // when it was stored
	Delivered int       // how often it was handed out, from 1
}

// Work says how webhooks are taken.
type Work struct {
	Together int           // at once, by this process
	AckWait  time.Duration // after it a job whose taker was killed is handed out again
	// Deliver answers whether the job is done; if not, it comes again after a time.
	Deliver func(ctx context.Context, d Delivery) (again time.Duration, done bool)
}

// Run hands jobs to Deliver until ctx ends, each to one of all dispatchers at a time and at least once. It waits
// for those in hand.
func (q *Queue) Run(ctx context.Context, w Work) error {
	var working sync.WaitGroup
	defer working.Wait()
	places := make(chan struct{}, w.Together)
	p := bus.Puller{
		Bus: q.bus, Stream: bus.StreamWebhooks, Most: w.Together,
		Config: jetstream.ConsumerConfig{
			Durable: bus.ConsumerWebhooks, AckPolicy: jetstream.AckExplicitPolicy, AckWait: w.AckWait, MaxDeliver: -1,
			MaxAckPending: maxWebhooksPending,
		},
		Room: func(ctx context.Context) int {
			select {
			case places <- struct{}{}: // free again right away: who fetches waits for one
				<-places
			case <-ctx.Done():
			}
			return cap(places) - len(places)
		},
		Take: func(ctx context.Context, msgs <-chan jetstream.Msg) bool {
			for m := range msgs {
				places <- struct{}{}
				working.Go(func() {
					defer func() { <-places }()
					q.takeWebhook(ctx, m, w.Deliver)
				})
			}
			return true
		},
	}
	return p.Run(ctx)
}

func (q *Queue) takeWebhook(ctx context.Context, m jetstream.Msg, deliver func(context.Context, Delivery) (time.Duration, bool)) {
	var d Delivery
	meta, err := m.Metadata()
	if err != nil {
		q.bus.Log().WarnContext(ctx, "take a webhook", "err", err)
		return
	}
	if err := strict.Decode(m.Data(), &d.WebhookJob); err != nil || d.Check() != nil || d.Subject() != m.Subject() {
		q.refuseWebhook(ctx, m, meta.Timestamp)
		return
	}
	d.Queued, d.Delivered = meta.Timestamp, int(meta.NumDelivered)
	again, done := deliver(ctx, d)
	if !done {
		if err := m.NakWithDelay(again); err != nil {
			q.bus.Log().DebugContext(ctx, "give a webhook back", "err", err) // it comes after the ack wait
		}
		return
	}
	q.ackWebhook(ctx, m)
}

// refuseWebhook dead-letters what is no webhook.
func (q *Queue) refuseWebhook(ctx context.Context, m jetstream.Msg, at time.Time) {
	err := deadletters.New(q.bus).PutRaw(ctx, m.Subject(), messages.Dead{
		Error:   messages.RunError{Code: messages.CodeInvalidInput, Message: "not a webhook of this fleet"},
		Subject: m.Subject(), Task: m.Data(), Time: at,
	})
	if err != nil {
		q.bus.Log().WarnContext(ctx, "dead-letter a webhook", "err", err)
		return // it comes again
	}
	q.ackWebhook(ctx, m)
}

func (q *Queue) ackWebhook(ctx context.Context, m jetstream.Msg) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), webhookAck)
	defer cancel()
	if err := m.DoubleAck(ctx); err != nil {
		q.bus.Log().WarnContext(ctx, "ack a webhook", "subject", m.Subject(), "err", err) // it is delivered once more
	}
}
