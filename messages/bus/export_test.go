package bus

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
)

// Ask makes a request as appends and acknowledgements do.
func (b *Bus) Ask(ctx context.Context, m *nats.Msg, wait time.Duration) (*nats.Msg, error) {
	return b.answers.ask(ctx, m, wait)
}

// Rest waits between two attempts.
func (b *Bus) Rest(ctx context.Context, d time.Duration) error { return b.rest(ctx, d) }

// InLane is where TASKS stores what is published on a subject.
func InLane(subject string) string { return inLane(subject) }
