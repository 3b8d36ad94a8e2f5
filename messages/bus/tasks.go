package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	pullSlack    = 500 * time.Millisecond // a pull waits so much longer than the server, for the answer to arrive
	maxHeartbeat = time.Second            // bounds how long a pull goes on with a server that is gone
	minHeartbeat = 100 * time.Millisecond
	controlRoom  = 16          // for heartbeats among the messages of a pull
	drainWait    = time.Second // bounds the wait for messages that were on their way when a caller left
)

// Tasks are the messages that workers share: tickets and errands. Safe for concurrent use.
type Tasks struct {
	bus *Bus

	// AckWait is how long the queue waits for a sign of life of a delivery before it delivers the message again.
	AckWait time.Duration
}

// Tasks looks for the consumer of the workers.
func (b *Bus) Tasks(ctx context.Context) (*Tasks, error) {
	var info struct {
		Config jetstream.ConsumerConfig `json:"config"`
	}
	if err := b.call(ctx, "CONSUMER.INFO."+StreamTasks+"."+ConsumerWorkers, nil, &info); err != nil {
		return nil, fmt.Errorf("look for consumer %s: %w (a dispatcher creates it: is one running?)", ConsumerWorkers, err)
	}
	if err := b.hasSpend(ctx); err != nil {
		return nil, err
	}
	return &Tasks{b, info.Config.AckWait}, nil
}

// Delivery is one delivery of a message. Its methods may be called from any goroutine. That an ack succeeds does not
// mean that this delivery was still the newest.
type Delivery struct {
	Subject   string // as stored
	Data      []byte
	Seq       uint64    // in the stream: names the ticket
	Delivered int       // how often the message was delivered, from 1
	Queued    time.Time // when it was stored
	Scheduler string    // the schedule that published it, if one did

	bus   *Bus
	reply string
}

// Pull asks for up to n messages and yields them as they come, for at most a time. Several may be open at once.
// When the server is gone meanwhile it asks again; only when nobody answered in all that time an error comes, and
// the caller may simply pull again. Messages that were on their way to a caller that stops early are handed back, or
// delivered again after the consumer's ack wait.
func (t *Tasks) Pull(ctx context.Context, n int, wait time.Duration) iter.Seq2[*Delivery, error] {
	return func(yield func(*Delivery, error) bool) {
		p := pull{bus: t.bus, left: n, end: time.Now().Add(wait)}
		for tries := 0; p.left > 0 && time.Now().Before(p.end); tries++ {
			err := p.request(ctx, yield)
			switch {
			case p.stopped:
				return
			case ctx.Err() != nil:
				yield(nil, context.Cause(ctx))
				return
			case err != nil && !transient(err):
				yield(nil, fmt.Errorf("pull tasks: %w", err))
				return
			case err == nil:
				tries = 0
			}
			p.err = err
			if err != nil {
				_ = pause(ctx, min(backoff(tries), time.Until(p.end)))
			}
		}
		if p.err != nil && !p.answered {
			yield(nil, fmt.Errorf("pull tasks: %w", p.err))
		}
	}
}

// pull is one call of Pull.
type pull struct {
	bus      *Bus
	left     int
	end      time.Time
	stopped  bool  // by its caller
	answered bool  // by the server, at least once
	err      error // of the last request
}

// request makes one pull request. Its error is transient when the server or the consumer's leader is gone.
func (p *pull) request(ctx context.Context, yield func(*Delivery, error) bool) error {
	in, err := openInbox(p.bus.nc, p.left+controlRoom)
	if err != nil {
		return err
	}
	defer func() { p.close(ctx, in) }()
	wait := time.Until(p.end)
	beat := min(max(wait/4, minHeartbeat), maxHeartbeat)
	if wait < 4*minHeartbeat {
		beat = 0
	}
	body, err := json.Marshal(struct {
		Batch   int           `json:"batch"`
		Expires time.Duration `json:"expires"`
		Beat    time.Duration `json:"idle_heartbeat,omitempty"` //nolint:tagliatelle // JetStream's
	}{p.left, max(wait, time.Millisecond), beat})
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	subject := apiPrefix + "CONSUMER.MSG.NEXT." + StreamTasks + "." + ConsumerWorkers
	if err := p.bus.nc.PublishRequest(subject, in.sub.Subject, body); err != nil {
		return err //nolint:wrapcheck // Pull says what it is
	}
	for p.left > 0 {
		m, err := p.receive(ctx, in, beat)
		if err != nil {
			return err
		}
		done, err := p.status(m)
		if done || err != nil {
			return err
		}
		if m.Header.Get(statusHeader) != "" {
			continue
		}
		d, err := p.bus.delivery(m)
		if err != nil {
			return err
		}
		p.left--
		if !yield(d, nil) {
			p.stopped = true
			return nil
		}
	}
	return nil
}

// receive waits for a message no longer than two heartbeats, or the rest of the pull.
func (p *pull) receive(ctx context.Context, in *inbox, beat time.Duration) (*nats.Msg, error) {
	wait := time.Until(p.end) + pullSlack
	if beat > 0 {
		wait = min(wait, 2*beat+pullSlack)
	}
	m, err := in.next(ctx, wait)
	if err == nil && m.Header.Get(statusHeader) != statusNobody {
		p.answered = true
	}
	return m, err
}

// status reads an answer without a message: done when the request is over.
func (p *pull) status(m *nats.Msg) (done bool, err error) {
	switch m.Header.Get(statusHeader) {
	case "", statusIdle:
		return false, nil
	case statusNone, statusTimeout:
		return true, nil
	case statusNobody:
		return true, nats.ErrNoResponders
	default: // the consumer moves to another server, or is gone: the next request will tell
		return true, &jetstream.APIError{Code: 503, Description: m.Header.Get("Description")}
	}
}

// close ends a request, and returns to the queue what was on its way to a caller that left.
func (p *pull) close(ctx context.Context, in *inbox) {
	if !p.stopped && ctx.Err() == nil {
		in.close()
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainWait)
	defer cancel()
	for _, m := range in.drain(ctx) {
		if m.Header.Get(statusHeader) == "" && m.Reply != "" {
			_ = p.bus.nc.Publish(m.Reply, []byte("-NAK")) // else the ack wait returns it
		}
	}
}

func (b *Bus) delivery(m *nats.Msg) (*Delivery, error) {
	meta, err := m.Metadata()
	if err != nil {
		return nil, fmt.Errorf("read delivery: %w", err)
	}
	return &Delivery{
		Subject: m.Subject, Data: m.Data, Seq: meta.Sequence.Stream, Delivered: int(meta.NumDelivered), //nolint:gosec // a count
		Queued: meta.Timestamp, Scheduler: m.Header.Get(jetstream.SchedulerHeader), bus: b, reply: m.Reply,
	}, nil
}

// Ack removes the message from the queue and waits until that is stored.
func (d *Delivery) Ack(ctx context.Context) error {
	err := d.bus.retry(ctx, func(ctx context.Context) error {
		_, err := d.bus.nc.RequestWithContext(ctx, d.reply, []byte("+ACK"))
		return err //nolint:wrapcheck // below
	})
	if err != nil {
		return fmt.Errorf("ack message %d: %w", d.Seq, err)
	}
	return nil
}

// Nak hands the message back, to be delivered again after a delay. It does not wait; if it is lost, the ack wait does
// the same.
func (d *Delivery) Nak(delay time.Duration) error {
	if delay <= 0 {
		return d.say("-NAK")
	}
	return d.say(fmt.Sprintf(`-NAK {"delay": %d}`, delay.Nanoseconds()))
}

// Working keeps the message for another ack wait. It does not wait.
func (d *Delivery) Working() error { return d.say("+WPI") }

// Term removes the message without it having been worked. It does not wait; if it is lost the message is delivered
// again.
func (d *Delivery) Term(reason string) error { return d.say("+TERM " + reason) }

func (d *Delivery) say(what string) error {
	if err := d.bus.nc.Publish(d.reply, []byte(what)); err != nil {
		return fmt.Errorf("answer for message %d: %w", d.Seq, err)
	}
	return nil
}
