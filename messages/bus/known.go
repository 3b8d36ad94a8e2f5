package bus

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/messages"
)

// known tells whether a run of this id has begun, as far back as events are kept. The answer of a replica may be some
// milliseconds old; the stream's window of duplicates covers those.
func (b *Bus) known(ctx context.Context, run messages.Ref) (known bool, err error) {
	subject := apiPrefix + "DIRECT.GET." + StreamEvents + "." + run.EventSubject(messages.EventRunQueued)
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
			return fmt.Errorf("look for events of %s: status %s", run, status)
		}
		return nil
	})
	return known, err
}
