package service

import (
	"context"
	"errors"
	"net/http"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/prompt"
	"github.com/longshore-run/longshore/messages/strict"
)

// catalog are the requests about agents and prompts.
func (s *Service) catalog() map[string]answerFunc {
	return map[string]answerFunc{
		control.SubjectAgentApply:     asked(s.applyAgent),
		control.SubjectAgentDelete:    asked(s.deleteAgent),
		control.SubjectAgentGet:       asked(s.getAgent),
		control.SubjectAgentHistory:   asked(s.agentHistory),
		control.SubjectPromptPut:      asked(s.putPrompt),
		control.SubjectPromptGet:      asked(s.getPrompt),
		control.SubjectPromptList:     asked(s.listPrompts),
		control.SubjectPromptRender:   asked(s.renderPrompt),
		control.SubjectPromptValidate: asked(s.validatePrompt),
		control.SubjectPromptHistory:  asked(s.promptHistory),
		control.SubjectPromptDelete:   asked(s.deletePrompt),
	}
}

// asked reads a request strictly before it is answered.
func asked[Request any](do func(context.Context, Request) (any, error)) answerFunc {
	return func(ctx context.Context, body []byte) (any, error) {
		var req Request
		if err := strict.Decode(body, &req); err != nil {
			return nil, err
		}
		return do(ctx, req)
	}
}

// catalogProblem is the public form of an error about agents and prompts; nil if it is another.
func catalogProblem(err error) *messages.Problem {
	switch {
	case errors.Is(err, messages.ErrRevision):
		return conflict(err.Error())
	case errors.Is(err, messages.ErrUnknownPrompt):
		return missing(messages.CodeNotFound, err)
	default:
		return nil
	}
}

// noAgent makes an unknown agent, which is a mistake of a task, something that is not found.
func noAgent(err error) error {
	if errors.Is(err, messages.ErrUnknownAgent) {
		return missing(messages.CodeUnknownAgent, err)
	}
	return err
}

func missing(code messages.Code, err error) *messages.Problem {
	return &messages.Problem{
		Type: "about:blank", Title: http.StatusText(http.StatusNotFound), Status: http.StatusNotFound, Code: code,
		Detail: strict.Clip(err.Error(), 1024),
	}
}

// announce tells the world of a change. It is stored by now: that nobody was told is no reason to say that it failed,
// and the history shows it anyway.
func (s *Service) announce(ctx context.Context, name string, c control.Change) {
	if err := s.cfg.Events.Announce(ctx, name, c); err != nil {
		s.cfg.Log.WarnContext(ctx, "announce a change", "event", name, "name", c.Name, "revision", c.Revision, "err", err)
	}
}

func (s *Service) applyAgent(ctx context.Context, req control.AgentApply) (any, error) {
	req.Agent.SetDefaults()
	req.Agent.Revision = 0
	if err := req.Check(); err != nil {
		return nil, err
	}
	c, changed, err := s.cfg.Catalog.ApplyAgent(ctx, req.Agent, req.By, req.IfRevision)
	if err != nil {
		return nil, err
	}
	if changed {
		s.announce(ctx, control.EventAgentApplied, c)
	}
	return control.AgentApplied{Name: c.Name, Revision: c.Revision, Changed: changed}, nil
}

func (s *Service) deleteAgent(ctx context.Context, req control.CatalogDelete) (any, error) {
	c, err := s.cfg.Catalog.DeleteAgent(ctx, req)
	if err != nil {
		return nil, noAgent(err)
	}
	s.announce(ctx, control.EventAgentApplied, c)
	return c, nil
}

func (s *Service) getAgent(ctx context.Context, req control.CatalogRequest) (any, error) {
	r, err := s.cfg.Catalog.AgentAt(ctx, req.Name, req.Revision)
	return r, noAgent(err)
}

func (s *Service) agentHistory(ctx context.Context, req control.CatalogRequest) (any, error) {
	changes, err := s.cfg.Catalog.AgentHistory(ctx, req.Name)
	return control.History{Changes: changes}, noAgent(err)
}

func (s *Service) putPrompt(ctx context.Context, req control.PromptPut) (any, error) {
	req.Prompt.SetDefaults()
	if err := req.Prompt.Validate(); err != nil {
		return nil, err
	}
	switch v, err := s.validate(ctx, req.Prompt); {
	case err != nil:
		return nil, err
	case !v.OK:
		return nil, &messages.FieldError{Field: "prompt", Reason: v.Errors[0]}
	}
	p, changed, err := s.cfg.Catalog.PutPrompt(ctx, req)
	if err != nil {
		return nil, err
	}
	if changed {
		s.announce(ctx, control.EventPromptChanged, control.Change{Name: p.ID, Revision: p.Version, At: *p.CreatedAt, By: p.Author})
	}
	return p, nil
}

func (s *Service) getPrompt(ctx context.Context, req control.CatalogRequest) (any, error) {
	return s.cfg.Catalog.Prompt(ctx, req.Name, req.Revision)
}

func (s *Service) listPrompts(ctx context.Context, req control.PromptFilter) (any, error) {
	list, err := s.cfg.Catalog.Prompts(ctx, req)
	return control.PromptList{Prompts: list}, err
}

// enter waits for a place to read or fill in a template, which may cost a second of a core.
func (s *Service) enter(ctx context.Context) (leave func(), err error) {
	select {
	case s.renders <- struct{}{}:
		return func() { <-s.renders }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *Service) validate(ctx context.Context, p messages.Prompt) (control.PromptVerdict, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return control.PromptVerdict{}, err
	}
	defer leave()
	return prompt.Validate(p, s.cfg.PromptPolicy), nil
}

func (s *Service) renderPrompt(ctx context.Context, req control.PromptRender) (any, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	vars, err := prompt.ParseVars("vars", req.Vars)
	if err != nil {
		return nil, err
	}
	p, err := s.cfg.Catalog.Prompt(ctx, req.ID, req.Version)
	if err != nil {
		return nil, err
	}
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	text, err := prompt.Render(p, vars, prompt.Options{ThrowOnMissing: req.ThrowOnMissing, Redact: s.cfg.Redact})
	if err != nil {
		return nil, err
	}
	return control.PromptRendered{ID: p.ID, Version: p.Version, Text: text, TokensEstimate: prompt.Tokens(text)}, nil
}

func (s *Service) validatePrompt(ctx context.Context, p messages.Prompt) (any, error) {
	return s.validate(ctx, p)
}

func (s *Service) promptHistory(ctx context.Context, req control.CatalogRequest) (any, error) {
	changes, err := s.cfg.Catalog.PromptHistory(ctx, req.Name)
	return control.History{Changes: changes}, err
}

func (s *Service) deletePrompt(ctx context.Context, req control.CatalogDelete) (any, error) {
	c, err := s.cfg.Catalog.DeletePrompt(ctx, req)
	if err != nil {
		return nil, err
	}
	s.announce(ctx, control.EventPromptChanged, c)
	return c, nil
}

// publishBuiltin makes a built-in agent known, unless somebody else has put or deleted an agent of its name.
func (s *Service) publishBuiltin(ctx context.Context, def messages.Definition) error {
	changes, err := s.cfg.Catalog.AgentHistory(ctx, def.Name)
	if err != nil {
		return err
	}
	if len(changes) > 0 && changes[0].By != catalog.ByDispatcher && changes[0].By != "" { // without a name: an older dispatcher
		return nil
	}
	_, _, err = s.cfg.Catalog.PutAgent(ctx, def)
	return err
}
