package webhooks

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/deadletters"
	"github.com/longshore-run/longshore/messages/control"
)

// State tells what became of the webhook of a run that has ended and wants one. Nothing is written down about a
// delivery: it was made when the end of the run has been taken, and the webhook is neither queued nor a dead letter.
func (q *Queue) State(ctx context.Context, run messages.Ref) (*control.WebhookState, error) {
	if err := run.Check(); err != nil {
		return nil, err
	}
	taken, err := q.endTaken(ctx, run) // first: who takes it queues before, and who gives up dead-letters before
	if err != nil {
		return nil, err
	}
	j := messages.RunWebhook(run, "", nil)
	m, queued, err := q.bus.Stream(bus.StreamWebhooks).Get(ctx, bus.Lookup{Last: j.Subject()})
	switch {
	case err != nil:
		return nil, fmt.Errorf("look for the webhook of %s: %w", run, err)
	case queued:
		return &control.WebhookState{State: control.WebhookPending, At: &m.Time}, nil
	}
	m, dead, err := q.bus.Stream(bus.StreamDead).Get(ctx, bus.Lookup{Last: j.DeadSubject()})
	switch {
	case err != nil:
		return nil, fmt.Errorf("look for the dead webhook of %s: %w", run, err)
	case !dead && taken:
		return &control.WebhookState{State: control.WebhookDelivered}, nil
	case !dead:
		return &control.WebhookState{State: control.WebhookPending}, nil
	}
	st := &control.WebhookState{State: control.WebhookDead, At: &m.Time}
	if d, ok := deadletters.New(q.bus).Read(m); ok {
		st.Attempts, st.LastError = d.Attempts, d.Error.Message
	}
	return st, nil
}

// endTaken reports whether a dispatcher has done what the end of a run asks for. While an older end cannot be taken it
// is false.
func (q *Queue) endTaken(ctx context.Context, run messages.Ref) (bool, error) {
	in := q.bus.Partitions(bus.StreamEvents)
	m, ok, err := in.Of(run).Get(ctx, bus.Lookup{Last: run.EventSubject(messages.EventRunFinished)})
	if err != nil {
		return false, fmt.Errorf("look for the end of %s: %w", run, err)
	}
	if !ok {
		return false, nil
	}
	js, err := bus.NewJetStream(q.bus.Conn())
	if err != nil {
		return false, err
	}
	cons, err := js.Consumer(ctx, in.NameOf(run), bus.ConsumerEnds)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at consumer %s: %w", bus.ConsumerEnds, err)
	}
	return cons.CachedInfo().AckFloor.Stream >= m.Seq, nil
}
