package dispatcher

import (
	"context"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// Agents are all agents by name.
func (c *Client) Agents(ctx context.Context) ([]messages.Definition, error) {
	if c.remote != nil {
		return c.remote.agents(ctx)
	}
	return c.agents.Agents(ctx)
}

// Agent is the current definition of an agent, at most two seconds old; ErrUnknownAgent if there is none.
func (c *Client) Agent(ctx context.Context, name string) (messages.Definition, error) {
	if c.remote != nil {
		return c.remote.agent(ctx, name)
	}
	return c.agents.Agent(ctx, name)
}

// ApplyAgent stores an agent for the whole fleet, runs that begin within two seconds excepted, and keeps by with it.
// With ifRevision it is done only if this is the newest revision, 0 for none; else the error is ErrRevision.
func (c *Client) ApplyAgent(ctx context.Context, def messages.Definition, by string, ifRevision *uint64) (control.AgentApplied, error) {
	var out control.AgentApplied
	err := c.request(ctx, control.SubjectAgentApply, control.AgentApply{Agent: def, By: by, IfRevision: ifRevision}, &out)
	return out, conflictAs(err, ErrRevision)
}

// DeleteAgent removes an agent. Its runs go on, its history stays, and a task that names it is refused.
func (c *Client) DeleteAgent(ctx context.Context, r control.CatalogDelete) (control.Change, error) {
	var out control.Change
	err := c.request(ctx, control.SubjectAgentDelete, r, &out)
	return out, conflictAs(err, ErrRevision)
}

// AgentAt returns a revision of an agent, or the newest for 0; ErrUnknownAgent if there is none, or it is not kept any
// more.
func (c *Client) AgentAt(ctx context.Context, name string, revision uint64) (control.AgentRevision, error) {
	var out control.AgentRevision
	err := c.request(ctx, control.SubjectAgentGet, control.CatalogRequest{Name: name, Revision: revision}, &out)
	return out, err
}

// AgentHistory is what is kept of the revisions of an agent, newest first, 64 at most.
func (c *Client) AgentHistory(ctx context.Context, name string) ([]control.Change, error) {
	var out control.History
	err := c.request(ctx, control.SubjectAgentHistory, control.CatalogRequest{Name: name}, &out)
	return out.Changes, err
}
