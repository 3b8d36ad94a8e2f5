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

// errNothing means that a tail had nothing new until the time its caller asked for.
var errNothing = errors.New("nothing new")

// tail reads a stream's messages of one subject filter in order, without a gap, for as long as its caller wants:
// when the connection, the server or the consumer goes away, it goes on after the last message that it gave.
// It belongs to one goroutine. The ephemeral consumer it uses acks nothing and needs no permission but its creation.
type tail struct {
	bus    *Bus
	stream string
	filter string
	also   []string                 // further filters; then the server checks no permission for them
	start  jetstream.ConsumerConfig // where to begin: its deliver policy
	strict bool                     // a stream that ends before last is an error: ErrAhead. Else it is waited for
	room   int                      // for messages that its caller has not taken yet; beyond it begins anew

	in       *inbox    // nil: to be opened
	consumed uint64    // messages of this consumer
	stored   uint64    // messages that there were for it when it was made
	last     uint64    // stream sequence of the last message that was given or passed over
	opened   bool      // once
	tries    int       // to open it, in a row
	since    time.Time // when these began
	heard    time.Time // when the server last gave a sign of life, or the consumer was made
}

// tailMessage is a message with how many of the filter follow it as of now.
type tailMessage struct {
	stored
	pending uint64
}

// close ends the tail. The server removes the consumer when it finds that nobody listens.
func (t *tail) close() {
	if t.in != nil {
		t.in.close()
		t.in = nil
	}
}

// next waits for a message until a time (zero: for ever), when the error is errNothing. Any other error is final: of
// ctx, of a closed connection, of a consumer that cannot be had.
func (t *tail) next(ctx context.Context, until time.Time) (tailMessage, error) {
	for {
		if ctx.Err() != nil {
			return tailMessage{}, context.Cause(ctx)
		}
		if t.in == nil {
			if err := t.open(ctx, until); err != nil {
				return tailMessage{}, err
			}
			continue
		}
		m, err := t.receive(ctx, until)
		if err == nil && m == nil {
			continue
		}
		if err != nil {
			return tailMessage{}, err
		}
		meta, err := m.Metadata()
		if err != nil || meta.Sequence.Consumer != t.consumed+1 {
			t.close() // something was lost on the way
			continue
		}
		t.consumed++
		t.last = meta.Sequence.Stream
		return tailMessage{stored{m.Subject, t.last, m.Header, m.Data, meta.Timestamp}, meta.NumPending}, nil
	}
}

// receive waits for one message. All nil: it was none, or the consumer is to be opened again.
func (t *tail) receive(ctx context.Context, until time.Time) (*nats.Msg, error) {
	wait, early := max(0, silence-time.Since(t.heard)), false
	if !until.IsZero() {
		if left := time.Until(until); left < wait {
			wait, early = left, true
		}
	}
	m, err := t.in.next(ctx, wait)
	if err == nil {
		t.heard = time.Now()
	}
	switch {
	case err == nil && m.Header.Get(statusHeader) == "":
		return m, nil
	case err == nil:
		t.control(m)
		return nil, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case early:
		return nil, errNothing
	default: // silence
		t.close()
		return nil, nil
	}
}

// control obeys a message that carries no data: flow control, or a heartbeat.
func (t *tail) control(m *nats.Msg) {
	if m.Header.Get(statusHeader) != statusIdle {
		t.close()
		return
	}
	if m.Reply != "" {
		_ = t.bus.nc.Publish(m.Reply, nil) // if it is lost, silence follows
		return
	}
	if stalled := m.Header.Get("Nats-Consumer-Stalled"); stalled != "" {
		_ = t.bus.nc.Publish(stalled, nil)
	}
	sent, err := strconv.ParseUint(m.Header.Get("Nats-Last-Consumer"), 10, 64)
	if err == nil && sent != t.consumed {
		t.close()
	}
}

// open makes the consumer. The first must be there within the budget of the Bus; later ones are tried for ever, for
// the caller's wait has its own end.
func (t *tail) open(ctx context.Context, until time.Time) error {
	if t.tries > 0 {
		wait := backoff(t.tries)
		if !until.IsZero() && time.Until(until) < wait {
			if err := pause(ctx, time.Until(until)); err != nil {
				return err
			}
			return errNothing
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	} else {
		t.since = time.Now()
	}
	t.tries++
	err := t.create(ctx)
	switch {
	case err == nil:
		t.tries, t.opened = 0, true
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !transient(err), !t.opened && time.Since(t.since) > t.bus.budget:
		return fmt.Errorf("follow %s: %w", t.filter, err)
	}
	if t.tries&(t.tries-1) == 0 { // the 1st, 2nd, 4th and so on: an outage is no line a second
		t.bus.log.WarnContext(ctx, "follow stream again", "stream", t.stream, "try", t.tries, "err", err)
	}
	return nil
}

func (t *tail) create(ctx context.Context) error {
	in, err := openInbox(t.bus.nc, t.room)
	if err != nil {
		return err
	}
	name := "tail-" + in.sub.Subject[strings.LastIndexByte(in.sub.Subject, '.')+1:] // as random as the inbox
	cfg := t.start
	if t.last > 0 {
		cfg.DeliverPolicy, cfg.OptStartSeq, cfg.OptStartTime = jetstream.DeliverByStartSequencePolicy, t.last+1, nil
	}
	cfg.Name, cfg.DeliverSubject, cfg.FilterSubject = name, in.sub.Subject, t.filter
	subject := "CONSUMER.CREATE." + t.stream + "." + name
	if len(t.also) > 0 {
		cfg.FilterSubject, cfg.FilterSubjects = "", append([]string{t.filter}, t.also...)
	} else {
		subject += "." + t.filter
	}
	cfg.AckPolicy, cfg.MaxDeliver, cfg.MemoryStorage, cfg.Replicas = jetstream.AckNonePolicy, 1, true, 1
	cfg.FlowControl, cfg.IdleHeartbeat, cfg.InactiveThreshold = true, heartbeat, 10*heartbeat
	req := struct {
		Stream string                   `json:"stream_name"`
		Config jetstream.ConsumerConfig `json:"config"`
		Action string                   `json:"action"`
	}{t.stream, cfg, "create"}
	var resp struct {
		Pending   uint64 `json:"num_pending"`
		Delivered struct {
			Stream uint64 `json:"stream_seq"`
		} `json:"delivered"`
	}
	attempt, cancel := context.WithTimeout(ctx, t.bus.answer)
	defer cancel()
	if t.strict && t.last > 0 {
		if err := t.check(attempt); err != nil {
			in.close()
			return err
		}
	}
	if err := t.bus.callOnce(attempt, subject, req, &resp); err != nil {
		in.close()
		return err
	}
	t.in, t.consumed, t.stored, t.heard = in, 0, resp.Pending, time.Now()
	t.last = max(t.last, resp.Delivered.Stream) // where it begins, should it be lost before its first message
	return nil
}

// check reports whether the stream can have given the last message: one that was made again, or lost its end with its
// machine's power, gives other messages the same sequences.
func (t *tail) check(ctx context.Context) error {
	var info struct {
		State struct {
			Last uint64 `json:"last_seq"`
		} `json:"state"`
	}
	if err := t.bus.callOnce(ctx, "STREAM.INFO."+t.stream, struct{}{}, &info); err != nil {
		return err
	}
	if t.last > info.State.Last {
		return fmt.Errorf("%w: %d, and %s ends at %d", ErrAhead, t.last, t.stream, info.State.Last)
	}
	return nil
}
