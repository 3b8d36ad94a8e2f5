package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Timing of a tail. A server that is gone is noticed after two heartbeats are missing.
const (
	heartbeat = time.Second
	silence   = 2*heartbeat + heartbeat/2
)

// ErrNothing means that a tail had nothing new until the time its caller asked for.
var ErrNothing = errors.New("nothing new")

// ErrAhead means that a position is behind the end of a stream: it belongs to another stream, or to one that was restored.
var ErrAhead = errors.New("the position is ahead of the stream")

// FollowRoom is for a reader of a whole stream, of which there are few.
const FollowRoom = 64 << 10

// Tail reads a stream's messages of one subject filter in order, without a gap, for as long as its caller wants:
// when the connection, the server or the consumer goes away, it continues after the last message that it gave.
// It belongs to one goroutine. The ephemeral consumer it uses acks nothing and needs no permission but its creation.
type Tail struct {
	Bus    *Bus
	Stream string
	Filter string
	Start  jetstream.ConsumerConfig // where to begin: its deliver policy
	Strict bool                     // a stream that ends before last is an error: ErrAhead. Else it is waited for
	Room   int                      // for messages that its caller has not taken yet; beyond it begins anew
	// Patient: it is opened the first time however long the server is away. Else that fails after the budget of the Bus.
	Patient bool

	in       *Inbox    // nil: to be opened
	consumed uint64    // messages of this consumer
	stored   uint64    // messages that there were for it when it was made
	Last     uint64    // stream sequence of the last message that was given or passed over
	opened   bool      // once
	from     uint64    // Last when it was opened first: it begins after that
	tries    int       // to open it, in a row
	since    time.Time // when these began
	heard    time.Time // when the server last gave a sign of life, or the consumer was made
}

// TailMessage is a message with how many of the filter follow it as of now.
type TailMessage struct {
	Message
	Pending uint64
}

// Close ends the tail. The server removes the consumer when it finds no subscriber.
func (t *Tail) Close() {
	if t.in != nil {
		t.in.Close()
		t.in = nil
	}
}

// Next waits for a message until a time (zero: forever), when the error is errNothing. Any other error is final: of
// ctx, of a closed connection, of a consumer that cannot be had.
func (t *Tail) Next(ctx context.Context, until time.Time) (TailMessage, error) {
	for {
		if ctx.Err() != nil {
			return TailMessage{}, context.Cause(ctx)
		}
		if t.in == nil {
			if err := t.open(ctx, until); err != nil {
				return TailMessage{}, err
			}
			continue
		}
		m, err := t.receive(ctx, until)
		if err == nil && m == nil {
			continue
		}
		if err != nil {
			return TailMessage{}, err
		}
		meta, err := m.Metadata()
		if err != nil || meta.Sequence.Consumer != t.consumed+1 {
			t.Close() // something was lost on the way
			continue
		}
		t.consumed++
		t.Last = meta.Sequence.Stream
		return TailMessage{Message{m.Subject, t.Last, m.Header, m.Data, meta.Timestamp}, meta.NumPending}, nil
	}
}

// receive waits for one message. All nil: it was none, or the consumer is to be opened again.
func (t *Tail) receive(ctx context.Context, until time.Time) (*nats.Msg, error) {
	wait, early := max(0, silence-time.Since(t.heard)), false
	if !until.IsZero() {
		if left := time.Until(until); left < wait {
			wait, early = left, true
		}
	}
	m, err := t.in.Next(ctx, wait)
	if err == nil {
		t.heard = time.Now()
	}
	switch {
	case err == nil && m.Header.Get(StatusHeader) == "":
		return m, nil
	case err == nil:
		t.control(m)
		return nil, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case early:
		return nil, ErrNothing
	default: // silence
		t.Close()
		return nil, nil
	}
}

// control obeys a message that carries no data: flow control, or a heartbeat.
func (t *Tail) control(m *nats.Msg) {
	if m.Header.Get(StatusHeader) != statusIdle {
		t.Close()
		return
	}
	if m.Reply != "" {
		_ = t.Bus.nc.Publish(m.Reply, nil) // if it is lost, silence follows
		return
	}
	if stalled := m.Header.Get("Nats-Consumer-Stalled"); stalled != "" {
		_ = t.Bus.nc.Publish(stalled, nil)
	}
	sent, err := strconv.ParseUint(m.Header.Get("Nats-Last-Consumer"), 10, 64)
	if err == nil && sent != t.consumed {
		t.Close()
	}
}

// Begin opens the tail, unless it is open.
func (t *Tail) Begin(ctx context.Context) error {
	for t.in == nil {
		if err := t.open(ctx, time.Time{}); err != nil {
			return err
		}
	}
	return nil
}

// Rewind has a tail that is closed begin again after a message that its caller had, or where it began if the caller had none.
func (t *Tail) Rewind(last uint64) { t.Last = max(last, t.from) }

// IsOpen reports whether the tail has a consumer now.
func (t *Tail) IsOpen() bool { return t.in != nil }

// Owes reports whether messages that were stored when the consumer was made have not come yet.
func (t *Tail) Owes() bool { return t.consumed < t.stored }

// open makes the consumer. The first must be there within the budget of the Bus unless the tail is Patient; later ones are tried
// forever, for the caller's wait has its own end.
func (t *Tail) open(ctx context.Context, until time.Time) error {
	if t.tries > 0 {
		wait := Backoff(t.tries)
		if !until.IsZero() && time.Until(until) < wait {
			if err := Pause(ctx, time.Until(until)); err != nil {
				return err
			}
			return ErrNothing
		}
		if err := Pause(ctx, wait); err != nil {
			return err
		}
	} else {
		t.since = time.Now()
	}
	t.tries++
	err := t.create(ctx)
	switch {
	case err == nil:
		if !t.opened {
			t.from = t.Last
		}
		t.tries, t.opened = 0, true
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !Transient(err), !t.opened && !t.Patient && time.Since(t.since) > t.Bus.budget:
		return fmt.Errorf("follow %s: %w", t.Filter, err)
	}
	if t.tries&(t.tries-1) == 0 { // the 1st, 2nd, 4th and so on: an outage is no line a second
		t.Bus.log.WarnContext(ctx, "follow stream again", "stream", t.Stream, "try", t.tries, "err", err)
	}
	return nil
}

func (t *Tail) create(ctx context.Context) error {
	in, err := OpenInbox(t.Bus.nc, t.Room)
	if err != nil {
		return err
	}
	name := "tail-" + in.Sub.Subject[strings.LastIndexByte(in.Sub.Subject, '.')+1:] // as random as the inbox
	cfg := t.Start
	switch {
	case t.Last > 0:
		cfg.DeliverPolicy, cfg.OptStartSeq, cfg.OptStartTime = jetstream.DeliverByStartSequencePolicy, t.Last+1, nil
	case t.opened && cfg.DeliverPolicy == jetstream.DeliverNewPolicy: // of a stream that was empty: all that it has is new
		cfg.DeliverPolicy = jetstream.DeliverAllPolicy
	}
	cfg.Name, cfg.DeliverSubject, cfg.FilterSubject = name, in.Sub.Subject, t.Filter
	subject := "CONSUMER.CREATE." + t.Stream + "." + name + "." + t.Filter
	cfg.AckPolicy, cfg.MaxDeliver, cfg.MemoryStorage, cfg.Replicas = jetstream.AckNonePolicy, 1, true, 1
	cfg.FlowControl, cfg.IdleHeartbeat, cfg.InactiveThreshold = true, heartbeat, 10*heartbeat
	req := struct {
		Stream string                   `json:"stream_name"`
		Config jetstream.ConsumerConfig `json:"config"`
		Action string                   `json:"action"`
	}{t.Stream, cfg, "create"}
	var resp struct {
		Pending   uint64 `json:"num_pending"`
		Delivered struct {
			Stream uint64 `json:"stream_seq"`
		} `json:"delivered"`
	}
	attempt, cancel := context.WithTimeout(ctx, t.Bus.answer)
	defer cancel()
	if t.Strict && t.Last > 0 {
		if err := t.check(attempt); err != nil {
			in.Close()
			return err
		}
	}
	if err := t.Bus.callOnce(attempt, subject, req, &resp); err != nil {
		in.Close()
		return err
	}
	t.in, t.consumed, t.stored, t.heard = in, 0, resp.Pending, time.Now()
	t.Last = max(t.Last, resp.Delivered.Stream) // where it begins, should it be lost before its first message
	return nil
}

// check reports whether the stream can have given the last message: one that was made again, or lost its end with its
// machine's power, gives other messages the same sequences.
func (t *Tail) check(ctx context.Context) error {
	var info struct {
		State struct {
			Last uint64 `json:"last_seq"`
		} `json:"state"`
	}
	if err := t.Bus.callOnce(ctx, "STREAM.INFO."+t.Stream, struct{}{}, &info); err != nil {
		return err
	}
	if t.Last > info.State.Last {
		return fmt.Errorf("%w: %d, and %s ends at %d", ErrAhead, t.Last, t.Stream, info.State.Last)
	}
	return nil
}
