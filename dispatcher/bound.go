package dispatcher

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

// ErrBound means that a client that is bound to a tenant cannot ask for this: it is about more than one tenant.
var ErrBound = errors.New("not for a client that is bound to a tenant")

// NewTenant is New for a user of the message store who may only do what is of one tenant: requests go to the subjects
// of that tenant, submits too, and events are read by consumers that are bound to it. It asks the server nothing.
// Agents, prompts and submitting batches are not for such a client: ErrBound. Requests about other tenants are a
// *messages.Problem with messages.CodeForbidden.
func NewTenant(ctx context.Context, nc *nats.Conn, tenant string) (*Client, error) {
	if err := (messages.Ref{Tenant: tenant, Run: "_"}).Check(); err != nil {
		return nil, fmt.Errorf("bind a client: %w", err)
	}
	b, err := bus.Open(ctx, nc, bus.Config{Streams: []string{}, Bound: true})
	if err != nil {
		return nil, err
	}
	return &Client{nc: nc, bus: b, tenant: tenant}, nil
}

// subject is where this client makes a request.
func (c *Client) subject(of string) (string, error) {
	if c.tenant == "" {
		return of, nil
	}
	own, ok := messages.TenantSubject(c.tenant, of)
	if !ok {
		return "", fmt.Errorf("%w: %s", ErrBound, of)
	}
	return own, nil
}
