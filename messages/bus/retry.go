package bus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Codes of the server that the protocol of a log depends on.
const (
	CodeWrongLast    jetstream.ErrorCode = 10071 // the subject does not end where the publish expected
	codeLastInFlight jetstream.ErrorCode = 10164 // another publish to the subject is under way
	codeNoPeers      jetstream.ErrorCode = 10005 // a cluster that starts has not met all its servers
	codeNotEnabled   jetstream.ErrorCode = 10076 // JetStream on this server
	codeNotAllowed   jetstream.ErrorCode = 10039 // JetStream for this account
	codeIDInFlight   jetstream.ErrorCode = 10158 // another publish with the same id is under way
	CodeNoMessage    jetstream.ErrorCode = 10037
	CodeNotDeleted   jetstream.ErrorCode = 10057 // a message that is to be deleted is not there
	codeNoSequence   jetstream.ErrorCode = 10043 // the same, of one in the middle of the stream
	CodeNoStream     jetstream.ErrorCode = 10059

	CodeNoConsumer jetstream.ErrorCode = 10014
	// CodeConsumerDiffers is that of a consumer that exists with settings that cannot be changed into those that were asked for.
	CodeConsumerDiffers jetstream.ErrorCode = 10012
	CodeMaxConsumers    jetstream.ErrorCode = 10026
	CodeOverlap         jetstream.ErrorCode = 10100 // of the filters of two consumers of a work queue
	CodeConsumerExists  jetstream.ErrorCode = 10148 // with other settings
)

// Waits between attempts.
const (
	minBackoff = 10 * time.Millisecond
	maxBackoff = time.Second
)

// Backoff is the jittered wait after attempt n, counted from 0.
func Backoff(n int) time.Duration {
	d := min(minBackoff<<min(n, 10), maxBackoff)
	return d/2 + rand.N(d/2)
}

// Pause waits for a time, or for the end of ctx, whose cause it returns.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Retry calls try, each time with a deadline for its answer, until it succeeds, fails for good, or the budget or ctx
// is spent.
func (b *Bus) Retry(ctx context.Context, try func(context.Context) error) error {
	return b.Again(ctx, func() error {
		attempt, cancel := context.WithTimeout(ctx, b.answer)
		defer cancel()
		return try(attempt)
	})
}

// Again is Retry of a function that bounds each attempt itself.
func (b *Bus) Again(ctx context.Context, try func() error) error {
	end := time.Now().Add(b.budget)
	var said error // by the server, unlike a deadline
	for n := 0; ; n++ {
		err := try()
		if err == nil || !Transient(err) {
			return err
		}
		switch {
		case !errors.Is(err, context.DeadlineExceeded):
			said = err
		case said != nil:
			err = said
		}
		err = b.because(err)
		if ctx.Err() != nil {
			return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
		}
		wait := Backoff(n)
		if time.Now().Add(wait).After(end) {
			return fmt.Errorf("no success in %d attempts over %v: %w", n+1, b.budget, err)
		}
		if cause := b.rest(ctx, wait); cause != nil {
			return fmt.Errorf("%w (%w)", cause, err)
		}
	}
}

// closedCheck is how soon a wait notices that the connection was closed.
const closedCheck = 50 * time.Millisecond

// rest is pause, cut short when the connection is closed, which never comes back.
func (b *Bus) rest(ctx context.Context, d time.Duration) error {
	for ; d > 0; d -= closedCheck {
		if err := Pause(ctx, min(d, closedCheck)); err != nil {
			return err
		}
		if b.nc.IsClosed() {
			return nats.ErrConnectionClosed
		}
	}
	return nil
}

// Transient reports whether the same request may succeed later: there was no answer, or the server said so.
func Transient(err error) bool {
	if api, ok := errors.AsType[*jetstream.APIError](err); ok {
		switch api.ErrorCode {
		case codeLastInFlight, codeIDInFlight, codeNoPeers:
			return true
		case codeNotEnabled, codeNotAllowed:
			return false
		default:
			return api.Code == http.StatusServiceUnavailable || api.Code == http.StatusTooManyRequests
		}
	}
	for _, t := range []error{
		context.DeadlineExceeded, context.Canceled, nats.ErrTimeout, nats.ErrNoResponders, jetstream.ErrNoStreamResponse,
		nats.ErrDisconnected, nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded, nats.ErrStaleConnection,
	} {
		if errors.Is(err, t) {
			return true
		}
	}
	return false
}

// Refused reports whether the server answered with a code.
func Refused(err error, code jetstream.ErrorCode) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && api.ErrorCode == code
}
