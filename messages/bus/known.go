package bus

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/messages"
)

// known tells whether a run of this id has begun, as far back as events are kept. The answer of a replica may be some
// milliseconds old; the stream's window of duplicates covers those.
func (b *Bus) known(ctx context.Context, run messages.Ref) (bool, error) {
	return b.has(ctx, StreamEvents, run.EventSubject(messages.EventRunQueued))
}

// waits tells whether a task of this id waits for its time, as known does.
func (b *Bus) waits(ctx context.Context, run messages.Ref) (bool, error) {
	return b.has(ctx, StreamTasks, run.DelaySubject())
}

// has tells whether a stream has a message on a subject. The subject is in that of the request, so that a right to ask
// may be bound to it.
func (b *Bus) has(ctx context.Context, stream, on string) (known bool, err error) {
	subject := apiPrefix + "DIRECT.GET." + stream + "." + on
	err = b.retry(ctx, func(ctx context.Context) error {
		m, err := b.nc.RequestWithContext(ctx, subject, nil)
		if err != nil {
			return err //nolint:wrapcheck // retry looks at it
		}
		switch status := m.Header.Get(statusHeader); status {
		case "":
			known = true
		case statusNone:
			known = false
		default:
			return fmt.Errorf("look for %s: status %s", on, status)
		}
		return nil
	})
	return known, err
}
