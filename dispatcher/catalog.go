package dispatcher

import (
	"context"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// List returns all agents by name.
func (of Agents) List(ctx context.Context) ([]messages.Definition, error) {
	if of.client.remote != nil {
		var list control.AgentList
		err := of.client.Call(ctx, control.ByID("listAgents"), control.Empty{}, &list)
		return list.Agents, err
	}
	return of.client.agents.Agents(ctx)
}

// Get returns the current definition of an agent, at most two seconds old; ErrUnknownAgent if there is none.
func (of Agents) Get(ctx context.Context, name string) (messages.Definition, error) {
	if of.client.remote != nil {
		var def messages.Definition
		err := of.client.Call(ctx, control.ByID("getAgent"), control.AgentRequest{Name: name}, &def)
		return def, err
	}
	return of.client.agents.Agent(ctx, name)
}

// Apply stores an agent for the whole fleet, runs that begin within two seconds excepted, and keeps by with it.
// With ifRevision it is done only if this is the newest revision, 0 for none; else the error is ErrRevision.
func (of Agents) Apply(ctx context.Context, def messages.Definition, by string, ifRevision *uint64) (control.AgentApplied, error) {
	var out control.AgentApplied
	err := of.client.request(ctx, control.SubjectAgentApply, control.AgentApply{Agent: def, By: by, IfRevision: ifRevision}, &out)
	return out, err
}

// Validate tells what is wrong with an agent as a person writes it, in YAML or JSON, and stores nothing.
func (of Agents) Validate(ctx context.Context, t control.AgentText) (control.AgentVerdict, error) {
	var out control.AgentVerdict
	err := of.client.request(ctx, control.SubjectAgentValidate, t, &out)
	return out, err
}

// Delete removes an agent. Its runs continue, its history stays, and a task that names it is refused.
func (of Agents) Delete(ctx context.Context, r control.CatalogDelete) (control.Change, error) {
	var out control.Change
	err := of.client.request(ctx, control.SubjectAgentDelete, r, &out)
	return out, err
}

// At returns a revision of an agent, or the newest for 0; ErrUnknownAgent if there is none, or it is no
// longer kept.
func (of Agents) At(ctx context.Context, name string, revision uint64) (control.AgentRevision, error) {
	var out control.AgentRevision
	err := of.client.request(ctx, control.SubjectAgentGet, control.CatalogRequest{Name: name, Revision: revision}, &out)
	return out, err
}

// History returns what is kept of the revisions of an agent, newest first, 64 at most.
func (of Agents) History(ctx context.Context, name string) ([]control.Change, error) {
	var out control.History
	err := of.client.request(ctx, control.SubjectAgentHistory, control.CatalogRequest{Name: name}, &out)
	return out.Changes, err
}

// Put stores a new version of a prompt once it was found right, and returns it as it is kept. The same
// prompt once more makes no new version. With ifVersion it is done only if this is the newest, 0 for none; else the error is
// ErrRevision.
func (of Prompts) Put(ctx context.Context, p messages.Prompt, ifVersion *uint64) (messages.Prompt, error) {
	var out messages.Prompt
	err := of.client.request(ctx, control.SubjectPromptPut, control.PromptPut{Prompt: p, IfVersion: ifVersion}, &out)
	return out, err
}

// Get returns a version of a prompt, or the newest for 0; ErrUnknownPrompt if there is none.
func (of Prompts) Get(ctx context.Context, id string, version uint64) (messages.Prompt, error) {
	var out messages.Prompt
	err := of.client.request(ctx, control.SubjectPromptGet, control.CatalogRequest{Name: id, Revision: version}, &out)
	return out, err
}

// List returns the prompts that fit a filter, by id, without their texts; 1000 at most.
func (of Prompts) List(ctx context.Context, f control.PromptFilter) ([]messages.Prompt, error) {
	var out control.PromptList
	err := of.client.request(ctx, control.SubjectPromptList, f, &out)
	return out.Prompts, err
}

// Render fills a stored prompt in. A variable that is missing is a *messages.FieldError of "vars".
func (of Prompts) Render(ctx context.Context, r control.PromptRender) (control.PromptRendered, error) {
	var out control.PromptRendered
	err := of.client.request(ctx, control.SubjectPromptRender, r, &out)
	return out, err
}

// Validate tells what is wrong with a prompt, and stores nothing.
func (of Prompts) Validate(ctx context.Context, p messages.Prompt) (control.PromptVerdict, error) {
	var out control.PromptVerdict
	err := of.client.request(ctx, control.SubjectPromptValidate, p, &out)
	return out, err
}

// History returns what is kept of the versions of a prompt, newest first, 64 at most.
func (of Prompts) History(ctx context.Context, id string) ([]control.Change, error) {
	var out control.History
	err := of.client.request(ctx, control.SubjectPromptHistory, control.CatalogRequest{Name: id}, &out)
	return out.Changes, err
}

// Delete removes a prompt. Its history stays, and so does what runs have taken of it.
func (of Prompts) Delete(ctx context.Context, r control.CatalogDelete) (control.Change, error) {
	var out control.Change
	err := of.client.request(ctx, control.SubjectPromptDelete, r, &out)
	return out, err
}
