package dispatcher

import (
	"context"
	"iter"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

// Follow yields the events of all runs of a tenant, or with an empty one of all tenants, as they are stored from now on,
// until ctx ends; then its error comes. A client that is bound to a tenant sees its own alone. None is lost while the
// connection is, up to the age limit of the stream.
func (c *Client) Follow(ctx context.Context, tenant string) iter.Seq2[messages.Event, error] {
	if c.remote != nil {
		return func(yield func(messages.Event, error) bool) { yield(messages.Event{}, ErrOverHTTP) }
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
	return c.events.Follow(ctx, "events."+tenant+".>")
}
