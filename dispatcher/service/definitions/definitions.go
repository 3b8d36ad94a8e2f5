// Package definitions keeps the agents and the prompts of the fleet.
package definitions

import (
	"context"
	"log/slog"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/prompt"
)

// Config is what Definitions works with.
type Config struct {
	Catalog *catalog.Catalog
	Events  *events.Store
	Policy  prompt.Policy                    // nil: every prompt may be stored
	Agents  func(*messages.Definition) error // the same of agents
	Redact  func(string) string              // nil: nothing is taken out of prompts
	Log     *slog.Logger
}

// Definitions keeps the agents and the prompts of the fleet.
type Definitions struct {
	cfg     Config
	renders chan struct{} // has an element for each prompt that is being filled in
}

// maxRenders is how many prompts are filled in at once.
const maxRenders = 4

// New returns Definitions.
func New(cfg Config) *Definitions {
	return &Definitions{cfg: cfg, renders: make(chan struct{}, maxRenders)}
}

// Handlers are the requests about agents and prompts.
func (ds *Definitions) Handlers() request.Handlers {
	return request.Handlers{
		control.SubjectAgentApply:     request.Read(ds.applyAgent),
		control.SubjectAgentDelete:    request.Read(ds.deleteAgent),
		control.SubjectAgentGet:       request.Read(ds.getAgent),
		control.SubjectAgentValidate:  request.Read(ds.validateAgent),
		control.SubjectAgentHistory:   request.Read(ds.agentHistory),
		control.SubjectPromptPut:      request.Read(ds.putPrompt),
		control.SubjectPromptGet:      request.Read(ds.getPrompt),
		control.SubjectPromptList:     request.Read(ds.listPrompts),
		control.SubjectPromptRender:   request.Read(ds.renderPrompt),
		control.SubjectPromptValidate: request.Read(ds.validatePrompt),
		control.SubjectPromptHistory:  request.Read(ds.promptHistory),
		control.SubjectPromptDelete:   request.Read(ds.deletePrompt),
	}
}

// announce publishes the event of a change. The change is stored by now: an event that is lost is no reason to report a failure,
// and the history shows the change anyway.
func (ds *Definitions) announce(ctx context.Context, name string, c control.Change) {
	if err := ds.cfg.Events.Announce(ctx, name, c); err != nil {
		ds.cfg.Log.WarnContext(ctx, "announce a change", "event", name, "name", c.Name, "revision", c.Revision, "err", err)
	}
}

func (ds *Definitions) applyAgent(ctx context.Context, req control.AgentApply) (any, error) {
	req.Agent.SetDefaults()
	req.Agent.Revision = 0
	if err := req.Check(); err != nil {
		return nil, err
	}
	if ds.cfg.Agents != nil {
		if err := ds.cfg.Agents(&req.Agent); err != nil {
			return nil, err
		}
	}
	if request.CallerOf(ctx).TextsOnly {
		revision, field, err := ds.onlyTexts(ctx, &req.Agent)
		switch {
		case err != nil:
			return nil, err
		case field != "":
			return nil, control.Forbidden("agent." + field + ": " + granted)
		case req.IfRevision != nil && *req.IfRevision != revision:
			return nil, messages.ErrRevision
		}
		req.IfRevision = &revision // what it was compared with must still be there
	}
	c, changed, err := ds.cfg.Catalog.ApplyAgent(ctx, req.Agent, req.By, req.IfRevision)
	if err != nil {
		return nil, err
	}
	if changed {
		ds.announce(ctx, control.EventAgentApplied, c)
	}
	return control.AgentApplied{Name: c.Name, Revision: c.Revision, Changed: changed}, nil
}

func (ds *Definitions) deleteAgent(ctx context.Context, req control.CatalogDelete) (any, error) {
	c, err := ds.cfg.Catalog.DeleteAgent(ctx, req)
	if err != nil {
		return nil, err
	}
	ds.announce(ctx, control.EventAgentApplied, c)
	return c, nil
}

func (ds *Definitions) getAgent(ctx context.Context, req control.CatalogRequest) (any, error) {
	return ds.cfg.Catalog.AgentAt(ctx, req.Name, req.Revision)
}

func (ds *Definitions) agentHistory(ctx context.Context, req control.CatalogRequest) (any, error) {
	changes, err := ds.cfg.Catalog.AgentHistory(ctx, req.Name)
	return control.History{Changes: changes}, err
}

func (ds *Definitions) putPrompt(ctx context.Context, req control.PromptPut) (any, error) {
	req.Prompt.SetDefaults()
	if err := req.Prompt.Validate(); err != nil {
		return nil, err
	}
	switch v, err := ds.validate(ctx, req.Prompt); {
	case err != nil:
		return nil, err
	case !v.OK:
		return nil, &messages.FieldError{Field: "prompt", Reason: v.Errors[0]}
	}
	p, changed, err := ds.cfg.Catalog.PutPrompt(ctx, req)
	if err != nil {
		return nil, err
	}
	if changed {
		ds.announce(ctx, control.EventPromptChanged, control.Change{Name: p.ID, Revision: p.Version, At: *p.CreatedAt, By: p.Author})
	}
	return p, nil
}

func (ds *Definitions) getPrompt(ctx context.Context, req control.CatalogRequest) (any, error) {
	return ds.cfg.Catalog.Prompt(ctx, req.Name, req.Revision)
}

func (ds *Definitions) listPrompts(ctx context.Context, req control.PromptFilter) (any, error) {
	list, err := ds.cfg.Catalog.Prompts(ctx, req)
	return control.PromptList{Prompts: list}, err
}

// enter waits for a permit to read or fill in a template, which may cost a second of a core.
func (ds *Definitions) enter(ctx context.Context) (leave func(), err error) {
	select {
	case ds.renders <- struct{}{}:
		return func() { <-ds.renders }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (ds *Definitions) validate(ctx context.Context, p messages.Prompt) (control.PromptVerdict, error) {
	leave, err := ds.enter(ctx)
	if err != nil {
		return control.PromptVerdict{}, err
	}
	defer leave()
	return prompt.Validate(p, ds.cfg.Policy), nil
}

func (ds *Definitions) renderPrompt(ctx context.Context, req control.PromptRender) (any, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	vars, err := prompt.ParseVars("vars", req.Vars)
	if err != nil {
		return nil, err
	}
	p, err := ds.cfg.Catalog.Prompt(ctx, req.ID, req.Version)
	if err != nil {
		return nil, err
	}
	leave, err := ds.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	text, err := prompt.Render(p, vars, prompt.Options{ThrowOnMissing: req.ThrowOnMissing, Redact: ds.cfg.Redact})
	if err != nil {
		return nil, err
	}
	return control.PromptRendered{ID: p.ID, Version: p.Version, Text: text, TokensEstimate: prompt.Tokens(text)}, nil
}

func (ds *Definitions) validatePrompt(ctx context.Context, p messages.Prompt) (any, error) {
	return ds.validate(ctx, p)
}

func (ds *Definitions) promptHistory(ctx context.Context, req control.CatalogRequest) (any, error) {
	changes, err := ds.cfg.Catalog.PromptHistory(ctx, req.Name)
	return control.History{Changes: changes}, err
}

func (ds *Definitions) deletePrompt(ctx context.Context, req control.CatalogDelete) (any, error) {
	c, err := ds.cfg.Catalog.DeletePrompt(ctx, req)
	if err != nil {
		return nil, err
	}
	ds.announce(ctx, control.EventPromptChanged, c)
	return c, nil
}
