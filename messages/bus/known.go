package bus

import (
	"context"

	"github.com/longshore-run/longshore/messages"
)

// known reports whether a run of this id has begun, as far back as events are kept.
func (b *Bus) known(ctx context.Context, run messages.Ref) (bool, error) {
	return b.Has(ctx, StreamEvents, run.EventSubject(messages.EventRunQueued))
}

// waits reports whether a task of this id waits for its time.
func (b *Bus) waits(ctx context.Context, run messages.Ref) (bool, error) {
	return b.Has(ctx, StreamTasks, run.DelaySubject())
}

// Has reports whether a stream has a message on a subject; its leader answers.
func (b *Bus) Has(ctx context.Context, stream, on string) (bool, error) {
	_, ok, err := b.Get(ctx, stream, Lookup{Last: on})
	return ok, err
}
