package dispatcher

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-run/longshore/messages"
)

// ErrNotPaused means that there is no pause to end.
var ErrNotPaused = errors.New("it is not paused")

// Pauses are all tenants, agents and providers that are paused, by kind and name.
func (c *Client) Pauses(ctx context.Context) (*messages.PauseList, error) {
	var list messages.PauseList
	if err := c.request(ctx, messages.SubjectPauses, struct{}{}, &list); err != nil {
		return nil, err
	}
	return &list, nil
}

// Pause keeps runs of a tenant or an agent from their next step, or models of a provider from being called, until it is
// resumed. What is paused already stays so, and is returned.
func (c *Client) Pause(ctx context.Context, of messages.QuotaRef, by, reason string) (*messages.PausedThing, error) {
	return c.pause(ctx, messages.SubjectPause, messages.PauseRequest{QuotaRef: of, By: by, Reason: reason})
}

// Resume ends a pause, which it returns, and the runs that it kept go on. ErrNotPaused: there is none.
func (c *Client) Resume(ctx context.Context, of messages.QuotaRef, by string) (*messages.PausedThing, error) {
	p, err := c.pause(ctx, messages.SubjectResume, messages.PauseRequest{QuotaRef: of, By: by})
	if errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("%s: %w", of, ErrNotPaused)
	}
	return p, err
}

func (c *Client) pause(ctx context.Context, subject string, req messages.PauseRequest) (*messages.PausedThing, error) {
	var p messages.PausedThing
	if err := c.request(ctx, subject, req, &p); err != nil {
		return nil, err
	}
	return &p, nil
}

// Why tells what a run waits for, or what it does. ErrNotFound: there is no such run.
func (c *Client) Why(ctx context.Context, run messages.Ref) (*messages.Why, error) {
	var y messages.Why
	if err := c.request(ctx, messages.SubjectWhy, messages.RunRequest{Tenant: run.Tenant, ID: run.Run}, &y); err != nil {
		return nil, err
	}
	return &y, nil
}
