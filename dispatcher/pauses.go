package dispatcher

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// ErrNotPaused means that there is no pause to end.
var ErrNotPaused = errors.New("it is not paused")

// Pauses are all tenants, agents and providers that are paused, by kind and name.
func (c *Client) Pauses(ctx context.Context) (*control.PauseList, error) {
	var list control.PauseList
	if err := c.request(ctx, control.SubjectPauses, struct{}{}, &list); err != nil {
		return nil, err
	}
	return &list, nil
}

// Pause keeps runs of a tenant or an agent from their next step, or models of a provider from being called, until it is
// resumed. What is paused already stays so, and is returned.
func (c *Client) Pause(ctx context.Context, of messages.QuotaRef, by, reason string) (*control.PausedThing, error) {
	return c.pause(ctx, control.SubjectPause, control.PauseRequest{QuotaRef: of, By: by, Reason: reason})
}

// Resume ends a pause, which it returns, and the runs that it kept go on. ErrNotPaused: there is none.
func (c *Client) Resume(ctx context.Context, of messages.QuotaRef, by string) (*control.PausedThing, error) {
	p, err := c.pause(ctx, control.SubjectResume, control.PauseRequest{QuotaRef: of, By: by})
	if errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("%s: %w", of, ErrNotPaused)
	}
	return p, err
}

func (c *Client) pause(ctx context.Context, subject string, req control.PauseRequest) (*control.PausedThing, error) {
	var p control.PausedThing
	if err := c.request(ctx, subject, req, &p); err != nil {
		return nil, err
	}
	return &p, nil
}

// Why tells what a run waits for, or what it does. ErrNotFound: there is no such run.
func (c *Client) Why(ctx context.Context, run messages.Ref) (*control.Why, error) {
	var y control.Why
	if err := c.request(ctx, control.SubjectWhy, control.RunRequest{Tenant: run.Tenant, ID: run.Run}, &y); err != nil {
		return nil, err
	}
	return &y, nil
}
