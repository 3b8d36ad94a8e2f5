package audit

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
)

// ErrNotSealed is the error of Open for an entry that was written in the clear.
var ErrNotSealed = errors.New("the entry is not encrypted")

// place is what the body of an entry is bound to.
func (e *Entry) place() []byte {
	return []byte("longshore audit 1\n" + strconv.FormatUint(e.Position, 10) + "\n" + e.Subject)
}

// holdsData reports whether an event tells what a run was given and did, or what people said of it. The others tell who did what.
func holdsData(e *messages.Event) bool {
	return e.Subject != messages.NoRun || e.Name() == control.EventFeedback
}

// seal encrypts the body with the key of the tenant. If that was destroyed its hash is kept in place of the body. Any other error means that
// nothing was done, and that the same call may succeed later.
func (e *Entry) seal(ctx context.Context, by runlogs.Sealer, tenant string) error {
	body := []byte(e.Body)
	if len(body) == 0 {
		body = e.Raw
	}
	sealed, err := by.Seal(ctx, tenant, body, e.place())
	switch {
	case errors.Is(err, record.ErrUnreadable):
		e.omit(body)
	case err != nil:
		return fmt.Errorf("encrypt an entry of tenant %s: %w", tenant, err)
	default:
		e.Body, e.Raw, e.Sealed = nil, nil, sealed
	}
	return nil
}

// Open puts the body of an entry where it stood before it was encrypted. The hash of the entry is that of what is stored. The error is that of
// the Sealer: a record.ErrUnreadable says that the key was destroyed.
func (e *Entry) Open(ctx context.Context, by runlogs.Sealer, tenant string) error {
	if len(e.Sealed) == 0 {
		return ErrNotSealed
	}
	body, err := by.Open(ctx, tenant, e.Sealed, e.place())
	if err != nil {
		return err
	}
	e.set(body)
	return nil
}
