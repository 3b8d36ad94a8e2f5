package dispatcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/control"
)

// Follow yields the events of all runs of a tenant, or with an empty one of all tenants, as they are stored from now on,
// until ctx ends; then its error comes. A client that is bound to a tenant sees its own alone. None is lost while the
// connection is, up to the age limit of the stream. Over HTTP it needs a tenant, asks for new events every second, and begins with
// those that were stored since now by the clock of this process.
func (c *Client) Follow(ctx context.Context, tenant string) iter.Seq2[messages.Event, error] {
	if c.remote != nil {
		return c.followPages(ctx, tenant)
	}
	if c.tenant != "" && tenant == "" {
		tenant = c.tenant
	}
	if tenant == "" {
		return c.events.Follow(ctx, bus.EveryEvent)
	}
	if err := (messages.Ref{Tenant: tenant, Run: "_"}).Check(); err != nil {
		return func(yield func(messages.Event, error) bool) { yield(messages.Event{}, err) }
	}
	if c.tenant != "" {
		return c.followOwn(ctx, "events."+tenant+".>")
	}
	return c.events.Follow(ctx, "events."+tenant+".>")
}

// followOwn is Follow of a client that is bound to a tenant. It has looked for no stream, and asks in how many events are only if they are not in
// one: its user may lack the right.
func (c *Client) followOwn(ctx context.Context, filter string) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		for e, err := range c.events.Follow(ctx, filter) {
			if bus.Refused(err, bus.CodeNoStream) {
				break
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
		b, err := bus.Open(ctx, c.nc, bus.Config{Streams: []string{bus.StreamEvents}})
		if err != nil {
			yield(messages.Event{}, fmt.Errorf("follow events: %w", err))
			return
		}
		for e, err := range events.New(b).Follow(ctx, filter) {
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// followEvery is how often a client over HTTP asks for new events.
const followEvery = time.Second

// followPages is Follow over HTTP. While no dispatcher answers it asks again.
func (c *Client) followPages(ctx context.Context, tenant string) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		if tenant == "" {
			yield(messages.Event{}, &messages.FieldError{Field: "tenant", Reason: "is missing: over HTTP the events of one tenant are followed"})
			return
		}
		since := time.Now()
		req := control.EventsRequest{Tenant: tenant, Since: &since}
		tick := time.NewTicker(followEvery)
		defer tick.Stop()
		for {
			var page control.EventPage
			err := c.request(ctx, control.SubjectEvents, req, &page)
			if err == nil {
				err = eachStored(&page, yield)
			}
			switch {
			case errors.Is(err, errEnough):
				return
			case ctx.Err() != nil:
				yield(messages.Event{}, context.Cause(ctx))
				return
			case err != nil && !unanswered(err):
				yield(messages.Event{}, fmt.Errorf("follow events: %w", err))
				return
			case err == nil:
				req.Follow(&page)
			}
			if page.More {
				continue
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				yield(messages.Event{}, context.Cause(ctx))
				return
			}
		}
	}
}

// errEnough ends a loop whose consumer wants no more.
var errEnough = errors.New("no more are wanted")

func eachStored(page *control.EventPage, yield func(messages.Event, error) bool) error {
	for _, stored := range page.Events {
		var e messages.Event
		if err := json.Unmarshal(stored.Event, &e); err != nil {
			return fmt.Errorf("read event %d: %w", stored.Seq, err)
		}
		if !yield(e, nil) {
			return errEnough
		}
	}
	return nil
}

// unanswered reports whether a request may be answered when it is made again.
func unanswered(err error) bool {
	p, ok := errors.AsType[*messages.Problem](err)
	return errors.Is(err, ErrUnavailable) || ok && p.Status == http.StatusServiceUnavailable
}
