package definitions

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/prompt"
)

// Instruct fills in the prompt that an agent names, as it is when a run begins.
func (ds *Definitions) Instruct(ctx context.Context, def *messages.Definition, task *messages.Task) error {
	if def.Prompt == nil {
		return nil
	}
	leave, err := ds.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	err = prompt.Resolver{Get: ds.cfg.Catalog.Prompt, Redact: ds.cfg.Redact}.Resolve(ctx, def, task)
	if _, wrong := errors.AsType[*messages.FieldError](err); wrong || errors.Is(err, messages.ErrUnknownPrompt) {
		return &messages.FieldError{Field: "agent", Reason: err.Error()}
	}
	return err
}

// At is an agent, at a revision if that is not 0.
func (ds *Definitions) At(ctx context.Context, name string, revision uint64) (messages.Definition, error) {
	if revision == 0 {
		return ds.cfg.Catalog.Agent(ctx, name)
	}
	at, err := ds.cfg.Catalog.AgentAt(ctx, name, revision)
	switch {
	case errors.Is(err, messages.ErrUnknownAgent), err == nil && at.Agent == nil:
		return messages.Definition{}, &messages.FieldError{
			Field: "revision", Reason: fmt.Sprintf("agent %s has no revision %d, or no longer", name, revision),
		}
	case err != nil:
		return messages.Definition{}, err
	}
	return *at.Agent, nil
}
