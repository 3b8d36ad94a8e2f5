package dispatcher

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/control"
)

// ErrBound means that a client that is bound to a tenant cannot ask for this: it is about more than one tenant.
var ErrBound = errors.New("not available to a client of one tenant")

// NewTenant is New for a user of the message store who may only do what is of one tenant, perhaps in an account of the
// tenant's own: requests go to the subjects of that tenant, submits too, and so do those for stored events; new ones come by
// a plain subscription. It uses no JetStream. Agents, prompts, log entries and
// submitting batches are not for such a client: ErrBound.
// Requests about other tenants are a *messages.Problem with messages.CodeForbidden.
func NewTenant(ctx context.Context, nc *nats.Conn, tenant string) (*Client, error) {
	if err := (messages.Ref{Tenant: tenant, Run: "_"}).Check(); err != nil {
		return nil, fmt.Errorf("bind a client: %w", err)
	}
	c := &Client{nc: nc, tenant: tenant}
	b, err := bus.Open(ctx, nc, bus.Config{Streams: []string{}, Pages: c.eventPage})
	if err != nil {
		return nil, err
	}
	c.on(b)
	return c, nil
}

// eventPage asks for a page of stored events.
func (c *Client) eventPage(ctx context.Context, r *control.EventsRequest) (*control.EventPage, error) {
	return ask[control.EventPage](ctx, c, control.SubjectEvents, r)
}

// subject is where this client makes a request.
func (c *Client) subject(o *control.Operation) (string, error) {
	switch {
	case c.tenant == "":
		return o.Subject, nil
	case !o.Tenants:
		return "", fmt.Errorf("%w: %s", ErrBound, o.Subject)
	default:
		return control.TenantSubject(c.tenant, o.Subject), nil
	}
}
