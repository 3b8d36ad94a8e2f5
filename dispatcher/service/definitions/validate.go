package definitions

import (
	"context"
	"errors"
	"strings"

	"github.com/longshore-run/longshore/dispatcher/agents"
	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// validateAgent reads an agent as a person writes it, and tells what storing it would refuse.
func (ds *Definitions) validateAgent(ctx context.Context, req control.AgentText) (any, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	leave, err := ds.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	draft, wrong := agents.ReadDraft(req.Text)
	var text string
	if wrong == nil {
		if req.Format {
			file, err := agents.Format(draft.Agent)
			if err != nil {
				return nil, err
			}
			text = string(file)
		}
		if wrong, err = ds.refused(ctx, &draft.Agent, req.Name); err != nil {
			return nil, err
		}
		wrong = draft.Within(wrong)
	}
	if wrong != nil {
		return control.AgentVerdict{Problems: []control.TextProblem{draft.Problem(wrong)}, Text: text}, nil
	}
	return control.AgentVerdict{OK: true, Agent: &draft.Agent, Text: text}, nil
}

// refused is why an agent that is valid may not be stored under a name by the caller; nil: it may be.
func (ds *Definitions) refused(ctx context.Context, d *messages.Definition, name string) (wrong, err error) {
	if name != "" && d.Name != name {
		return &messages.FieldError{Field: "name", Reason: "must stay " + name}, nil
	}
	if ds.cfg.Agents != nil {
		if err := ds.cfg.Agents(d); err != nil {
			field, ok := errors.AsType[*messages.FieldError](err)
			if !ok {
				return nil, err
			}
			return &messages.FieldError{Field: strings.TrimPrefix(field.Field, "agent."), Reason: field.Reason}, nil
		}
	}
	if !request.CallerOf(ctx).TextsOnly {
		return nil, nil
	}
	_, field, err := ds.onlyTexts(ctx, d)
	if err != nil || field == "" {
		return nil, err
	}
	return &messages.FieldError{Field: field, Reason: granted}, nil
}
