package taskqueue

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/queue"
)

const (
	takeWait  = 3 * time.Second // bounds the wait for the next message of a take, all of which are there already
	takePage  = 64              // messages asked for at once: what their runs are answered does not wait behind thousands
	drainWait = time.Second     // bounds the wait for messages that were on their way when a caller left
)

// Tasks are the messages that workers share: tickets and errands. Safe for concurrent use.
type Tasks struct {
	queue *Queue

	// AckWait is how long the queue waits for a sign of life of a delivery before it delivers the message again.
	AckWait time.Duration
}

// Tasks looks for the consumer that all workers share, in each partition.
func (tq *Queue) Tasks(ctx context.Context) (*Tasks, error) {
	var info struct {
		Config jetstream.ConsumerConfig `json:"config"`
	}
	for _, stream := range tq.tasks().Names() {
		if err := tq.bus.Call(ctx, "CONSUMER.INFO."+stream+"."+bus.ConsumerWorkers, nil, &info); err != nil {
			return nil, fmt.Errorf("look for consumer %s: %w (a dispatcher creates it: is one running?)", bus.ConsumerWorkers, err)
		}
	}
	if err := tq.hasSpend(ctx); err != nil {
		return nil, err
	}
	return &Tasks{queue: tq, AckWait: info.Config.AckWait}, nil
}

// hasSpend says what is wrong when the stream is not there: without it no run could be settled.
func (tq *Queue) hasSpend(ctx context.Context) error {
	err := tq.bus.Call(ctx, "STREAM.INFO."+bus.StreamSpend, nil, nil)
	if bus.Refused(err, bus.CodeNoStream) {
		return errors.New("stream " + bus.StreamSpend + " does not exist: it is created by a dispatcher (is one of this version running?)")
	}
	return err
}

// Delivery is one delivery of a message. Its methods may be called from any goroutine. That an ack succeeds does not
// mean that this delivery was still the newest.
type Delivery struct {
	Subject   string // as stored
	Data      []byte
	Stream    string    // that it is in: TASKS, or a partition of it
	Seq       uint64    // in the stream: names the ticket of its run
	Delivered int       // how often the message was delivered, from 1
	Queued    time.Time // when it was stored
	Scheduler string    // the schedule that published it, if one did
	Trace     string    // its header traceparent, as it came
	More      bool      // the lane had more when it gave this one; false does not count messages that come again

	queue   *Queue
	reply   string
	ackWait time.Duration

	mu    sync.Mutex
	since time.Time // no earlier than this the queue began its ack wait
}

// Take asks a lane for up to n messages and yields those that are there, without waiting for more. It makes the lane if
// it is not there: ErrLanesFull is when that cannot be done. Messages that were on their way to a caller that stops
// early are handed back, or delivered again after the ack wait.
func (t *Tasks) Take(ctx context.Context, l queue.Lane, n int) iter.Seq2[*Delivery, error] {
	return func(yield func(*Delivery, error) bool) {
		r := take{queue: t.queue, ackWait: t.AckWait, lane: l, left: n}
		err := r.request(ctx, yield)
		if errors.Is(err, nats.ErrNoResponders) { // the lane was not made yet, or was removed
			if err = t.Make(ctx, l); err == nil {
				err = r.request(ctx, yield)
			}
		}
		if err != nil && !r.stopped {
			yield(nil, fmt.Errorf("take from lane %s: %w", l, err))
		}
	}
}

// Await asks a lane for its next message, and waits so long for one: nil when none came. It makes no lane: that there is none is an error.
func (t *Tasks) Await(ctx context.Context, l queue.Lane, wait time.Duration) (next *Delivery, err error) {
	r := take{queue: t.queue, ackWait: t.AckWait, lane: l, left: 1, wait: wait}
	err = r.request(ctx, func(d *Delivery, _ error) bool {
		next = d
		return true
	})
	if err != nil && next == nil {
		return nil, fmt.Errorf("wait for lane %s: %w", l, err)
	}
	return next, nil
}

// Make is Bus.MakeLane with the fleet's ack wait, and does not wait long.
func (t *Tasks) Make(ctx context.Context, l queue.Lane) error {
	ctx, cancel := context.WithTimeout(ctx, takeWait)
	defer cancel()
	return t.queue.MakeLane(ctx, l, t.AckWait)
}

// take is one call of Take.
type take struct {
	queue   *Queue
	ackWait time.Duration
	lane    queue.Lane
	left    int
	wait    time.Duration // for a first message; 0: it must be there
	stopped bool          // by its caller
	asked   time.Time     // when the newest page was asked for
}

func (t *take) request(ctx context.Context, yield func(*Delivery, error) bool) error {
	in, err := bus.OpenInbox(t.queue.bus.Conn(), min(t.left, takePage)+bus.AnswerRoom)
	if err != nil {
		return err
	}
	defer func() { t.close(ctx, in) }()
	subject := bus.APIPrefix + "CONSUMER.MSG.NEXT." + t.queue.tasks().Name(t.lane.Partition) + "." + bus.LaneConsumer(t.lane)
	for asked := 0; t.left > 0; asked-- {
		if asked == 0 {
			asked, t.asked = min(t.left, takePage), time.Now()
			if err := t.queue.bus.Conn().PublishRequest(subject, in.Sub.Subject, t.ask(asked)); err != nil {
				return err
			}
		}
		m, err := in.Next(ctx, t.wait+takeWait)
		if err != nil {
			return err
		}
		switch m.Header.Get(bus.StatusHeader) {
		case "":
		case bus.StatusNone, bus.StatusTimeout: // that was all
			return nil
		case bus.StatusNoResponders:
			return nats.ErrNoResponders
		default: // the consumer moves to another server, or was removed: the next request will tell
			return &jetstream.APIError{Code: 503, Description: m.Header.Get("Description")}
		}
		d, err := t.queue.delivery(m, t.ackWait, t.asked)
		if err != nil {
			return err
		}
		t.left--
		if !yield(d, nil) {
			t.stopped = true
			return nil
		}
	}
	return nil
}

// ask is the request for so many messages.
func (t *take) ask(n int) []byte {
	if t.wait > 0 {
		return fmt.Appendf(nil, `{"batch":%d,"expires":%d}`, n, t.wait)
	}
	return fmt.Appendf(nil, `{"batch":%d,"no_wait":true}`, n)
}

// close ends a request, and returns to the queue what was on its way to a caller that left.
func (t *take) close(ctx context.Context, in *bus.Inbox) {
	if !t.stopped && ctx.Err() == nil {
		in.Close()
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainWait)
	defer cancel()
	for _, m := range in.Drain(ctx) {
		if m.Header.Get(bus.StatusHeader) == "" && m.Reply != "" {
			_ = t.queue.bus.Conn().Publish(m.Reply, []byte("-NAK")) // else the ack wait returns it
		}
	}
}

func (tq *Queue) delivery(m *nats.Msg, ackWait time.Duration, asked time.Time) (*Delivery, error) {
	meta, err := m.Metadata()
	if err != nil {
		return nil, fmt.Errorf("read delivery: %w", err)
	}
	return &Delivery{
		Subject: bus.AsStored(m.Subject), Data: m.Data, Stream: meta.Stream, Seq: meta.Sequence.Stream, Delivered: int(meta.NumDelivered),
		Queued: meta.Timestamp, Scheduler: m.Header.Get(jetstream.SchedulerHeader), Trace: m.Header.Get(messages.HeaderTraceparent), More: meta.NumPending > 0,
		queue: tq, reply: m.Reply, ackWait: ackWait, since: asked,
	}, nil
}

// Partition is the one of the queue that the message is in.
func (d *Delivery) Partition() int {
	i, _ := d.queue.tasks().Index(d.Stream)
	return i
}

// Belongs reports whether the message is where a message of the run is. One that stands elsewhere was not published by Longshore.
func (d *Delivery) Belongs(run messages.Ref) bool { return d.queue.tasks().Owns(d.Stream, run) }

// Load reads the message of a delivery that another worker has handed over.
func (d *Delivery) Load(ctx context.Context) error {
	meta, err := (&nats.Msg{Reply: d.reply, Sub: &nats.Subscription{}}).Metadata()
	if err != nil {
		return fmt.Errorf("read delivery: %w", err)
	}
	m, ok, err := d.queue.bus.Stream(d.Stream).Get(ctx, bus.Lookup{Seq: d.Seq})
	switch {
	case err != nil:
		return fmt.Errorf("load message %d: %w", d.Seq, err)
	case !ok:
		return fmt.Errorf("load message %d: %w", d.Seq, ErrGone)
	}
	d.Subject, d.Data, d.Queued, d.Delivered = bus.AsStored(m.Subject), m.Data, m.Time, int(meta.NumDelivered)
	d.Scheduler, d.Trace = m.Header.Get(jetstream.SchedulerHeader), m.Header.Get(messages.HeaderTraceparent)
	return nil
}

// ErrGone means that a message is no longer in the queue.
var ErrGone = errors.New("it is no longer in the queue")

// Ack removes the message from the queue and waits until that is stored.
func (d *Delivery) Ack(ctx context.Context) error {
	m := &nats.Msg{Subject: d.reply, Data: []byte("+ACK")}
	err := d.queue.bus.Again(ctx, func() error {
		err := d.queue.bus.Confirm(ctx, m)
		if errors.Is(err, nats.ErrNoResponders) { // the lane was removed meanwhile: an ack does no more than this
			return d.queue.remove(ctx, d.Stream, d.Seq)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("ack message %d: %w", d.Seq, err)
	}
	return nil
}

// Nak hands the message back, to be delivered again after a delay, and waits until the queue knows. If it fails, the ack
// wait does the same.
func (d *Delivery) Nak(ctx context.Context, delay time.Duration) error {
	what := "-NAK"
	if delay > 0 {
		what = fmt.Sprintf(`-NAK {"delay": %d}`, delay.Nanoseconds())
	}
	m := &nats.Msg{Subject: d.reply, Data: []byte(what)}
	err := d.queue.bus.Again(ctx, func() error { return d.queue.bus.Confirm(ctx, m) })
	if err != nil {
		return fmt.Errorf("give message %d back: %w", d.Seq, err)
	}
	return nil
}

// Term removes the message without it having been worked. It does not wait; if it is lost the message is delivered
// again.
func (d *Delivery) Term(reason string) error {
	if err := d.queue.bus.Conn().Publish(d.reply, []byte("+TERM "+reason)); err != nil {
		return fmt.Errorf("answer for message %d: %w", d.Seq, err)
	}
	return nil
}
