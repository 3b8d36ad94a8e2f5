package taskqueue

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

const (
	intakeFetched   = 256
	intakeAckWait   = 10 * time.Second // to put a task into the queue is one publish
	intakePublish   = 5 * time.Second
	maxIntakeHeader = 256 // bytes of a header's value that is kept
)

// Intake puts what tenants publish into the queue until ctx ends: each task at least once, in the order in which they came
// as long as one process does it and the server refuses none. One consumer is shared by all dispatchers.
func (tq *Queue) Intake(ctx context.Context) error {
	js, err := jetstream.New(tq.bus.Conn(), jetstream.WithPublishAsyncMaxPending(intakeFetched), jetstream.WithPublishAsyncTimeout(intakePublish))
	if err != nil {
		return fmt.Errorf("use JetStream: %w", err)
	}
	defer js.CleanupPublisher()
	p := bus.Puller{
		Bus: tq.bus, Stream: bus.StreamIntake, Most: intakeFetched,
		Config: jetstream.ConsumerConfig{
			Durable: bus.ConsumerIntake, AckPolicy: jetstream.AckExplicitPolicy, AckWait: intakeAckWait, MaxDeliver: -1,
		},
		Take: func(ctx context.Context, msgs <-chan jetstream.Msg) bool { return tq.takeIn(ctx, js, msgs) },
	}
	return p.Run(ctx)
}

// comeIn is a task that is on its way into the queue.
type comeIn struct {
	msg    jetstream.Msg
	stored jetstream.PubAckFuture
}

// takeIn passes on what comes.
func (tq *Queue) takeIn(ctx context.Context, js jetstream.JetStream, msgs <-chan jetstream.Msg) bool {
	under, failed := make(chan comeIn, intakeFetched), make(chan error, 1)
	go func() { failed <- tq.settle(ctx, under) }()
	for m := range msgs {
		stored, err := js.PublishMsgAsync(tq.queued(m))
		if err != nil {
			_ = m.NakWithDelay(bus.PullPause) // without it the task comes again after the ack wait
			tq.bus.Log().WarnContext(ctx, "put a task into the queue", "subject", m.Subject(), "err", err)
			continue
		}
		under <- comeIn{m, stored}
	}
	close(under)
	err := <-failed
	if err != nil && ctx.Err() == nil {
		tq.bus.Log().WarnContext(ctx, "put tasks of tenants into the queue", "err", err)
	}
	return err == nil
}

// settle removes what TASKS has stored, and hands the rest back. Each future ends by itself.
func (tq *Queue) settle(ctx context.Context, under <-chan comeIn) (failed error) {
	for c := range under {
		select {
		case <-c.stored.Ok():
			if err := c.msg.Ack(); err != nil { // it comes again, as a duplicate
				tq.bus.Log().DebugContext(ctx, "ack a task of a tenant", "err", err)
			}
		case err := <-c.stored.Err():
			_ = c.msg.NakWithDelay(bus.PullPause) // without it the task comes again after the ack wait
			failed = fmt.Errorf("store %s: %w", c.stored.Msg().Subject, err)
		}
	}
	return failed
}

// queued is the message for the queue: of what was published it has the body, the trace and the id. A task that has no room
// for headers has none.
func (tq *Queue) queued(m jetstream.Msg) *nats.Msg {
	subject := bus.TaskOfIntake(m.Subject())
	t := append(strings.SplitN(subject, ".", 4), "", "", "") // tasks, priority, tenant, run; fewer, if one of them is a wildcard
	tenant := t[2]
	out := &nats.Msg{Subject: tq.tasks().Subject(messages.Ref{Tenant: tenant, Run: t[3]}, subject), Data: m.Data(), Header: nats.Header{}}
	if parent := m.Headers().Get(messages.HeaderTraceparent); len(parent) <= maxIntakeHeader {
		bus.SetTrace(out.Header, parent)
	}
	if id := intakeID(m, tenant); id != "" {
		out.Header.Set(bus.HeaderMsgID, id)
	}
	if int64(out.Size()+bus.MaxHeaders) > tq.bus.Conn().MaxPayload() {
		out.Header = nil
	}
	return out
}

// intakeID is an id that is the same when the task comes again, and not that of another tenant.
func intakeID(m jetstream.Msg, tenant string) string {
	id, own := m.Headers().Get(bus.HeaderMsgID), tenant+"."
	switch {
	case len(id) > maxIntakeHeader:
	case strings.HasPrefix(id, own):
		return id
	case id != "":
		return own + "/" + id
	}
	meta, err := m.Metadata()
	if err != nil {
		return ""
	}
	return bus.ConsumerIntake + "/" + strconv.FormatInt(meta.Timestamp.UnixNano(), 10) + "." + strconv.FormatUint(meta.Sequence.Stream, 10)
}
