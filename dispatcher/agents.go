package dispatcher

import (
	"context"

	"github.com/longshore-run/longshore/messages"
)

// Agents are all agents by name.
func (c *Client) Agents(ctx context.Context) ([]messages.Definition, error) { return c.bus.Agents(ctx) }

// Agent is the current definition of an agent, at most two seconds old; ErrUnknownAgent if there is none.
func (c *Client) Agent(ctx context.Context, name string) (messages.Definition, error) {
	return c.bus.Agent(ctx, name)
}
