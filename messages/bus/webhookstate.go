package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
)

// WebhookState tells what became of the webhook of a run that has ended and wants one. Nothing is written down about a
// delivery: it was made when the end of the run has been taken, and the webhook is neither queued nor a dead letter.
func (b *Bus) WebhookState(ctx context.Context, run messages.Ref) (*messages.WebhookState, error) {
	if err := run.Check(); err != nil {
		return nil, err
	}
	taken, err := b.endTaken(ctx, run) // first: who takes it queues before, and who gives up buries before
	if err != nil {
		return nil, err
	}
	j := messages.RunWebhook(run, "", nil)
	m, queued, err := b.Get(ctx, StreamWebhooks, Lookup{Last: j.Subject()})
	switch {
	case err != nil:
		return nil, fmt.Errorf("look for the webhook of %s: %w", run, err)
	case queued:
		return &messages.WebhookState{State: messages.WebhookPending, At: &m.Time}, nil
	}
	m, dead, err := b.Get(ctx, StreamDead, Lookup{Last: j.DeadSubject()})
	switch {
	case err != nil:
		return nil, fmt.Errorf("look for the dead webhook of %s: %w", run, err)
	case !dead && taken:
		return &messages.WebhookState{State: messages.WebhookDelivered}, nil
	case !dead:
		return &messages.WebhookState{State: messages.WebhookPending}, nil
	}
	st := &messages.WebhookState{State: messages.WebhookDead, At: &m.Time}
	if d, ok := b.dead(m); ok {
		st.Attempts, st.LastError = d.Attempts, d.Error.Message
	}
	return st, nil
}

// endTaken reports whether a dispatcher has done what the end of a run asks for. While an older end cannot be taken it
// is false.
func (b *Bus) endTaken(ctx context.Context, run messages.Ref) (bool, error) {
	m, ok, err := b.Get(ctx, StreamEvents, Lookup{Last: run.EventSubject(messages.EventRunFinished)})
	if err != nil {
		return false, fmt.Errorf("look for the end of %s: %w", run, err)
	}
	if !ok {
		return false, nil
	}
	js, err := newJetStream(b.nc)
	if err != nil {
		return false, err
	}
	cons, err := js.Consumer(ctx, StreamEvents, consumerEnds)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at consumer %s: %w", consumerEnds, err)
	}
	return cons.CachedInfo().AckFloor.Stream >= m.Seq, nil
}
