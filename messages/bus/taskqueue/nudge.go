package taskqueue

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
)

// Nudge tells the worker that owns a run that its log has grown. It is not stored and may be lost.
func (tq *Queue) Nudge(_ context.Context, run messages.Ref) error {
	if err := run.Check(); err != nil {
		return err
	}
	if err := tq.bus.Conn().Publish(run.NudgeSubject(), nil); err != nil {
		return fmt.Errorf("nudge %s: %w", run, err)
	}
	return nil
}

// Nudges calls f for each hint, one at a time, until ctx ends; then it returns nil. Hints that come faster than f
// takes them may be lost.
func (tq *Queue) Nudges(ctx context.Context, f func(run messages.Ref)) error {
	sub, err := tq.bus.Conn().SubscribeSync("nudge.*.*")
	if err != nil {
		return fmt.Errorf("subscribe to nudges: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only when the connection is gone
	for {
		m, err := sub.NextMsgWithContext(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, nats.ErrSlowConsumer):
			continue
		case err != nil:
			return fmt.Errorf("wait for nudges: %w", err)
		}
		t := strings.Split(m.Subject, ".")
		if run := (messages.Ref{Tenant: t[1], Run: t[2]}); run.Check() == nil {
			f(run)
		}
	}
}
