package prompt

import (
	"context"
	"fmt"
	"maps"

	"github.com/longshore-run/longshore/messages"
)

// Resolver makes the instructions of an agent of the prompt that it names.
type Resolver struct {
	// Get returns a version of a prompt, or the newest for 0; messages.ErrUnknownPrompt if there is none.
	Get func(ctx context.Context, id string, version uint64) (messages.Prompt, error)

	// Redact is that of Options: it takes secrets out of what a prompt puts through redact. Optional.
	Redact func(string) string
}

// Resolve sets the instructions of an agent and the prompt version used. Values are taken from the agent; a name that it does not
// define is looked up at the top level of the task's context, so a task can fill gaps but cannot override the agent. An undefined
// variable is a *messages.FieldError.
func (r Resolver) Resolve(ctx context.Context, def *messages.Definition, task *messages.Task) error {
	ref := def.Prompt
	if ref == nil {
		return nil
	}
	p, err := r.Get(ctx, ref.ID, ref.Version)
	if err != nil {
		return fmt.Errorf("prompt %s: %w", ref.ID, err)
	}
	vars, err := ParseVars("context", task.Context)
	if err != nil {
		return err
	}
	own, err := ParseVars("prompt.vars", ref.Vars)
	if err != nil {
		return err
	}
	maps.Copy(vars, own)
	text, err := Render(p, vars, Options{ThrowOnMissing: true, Redact: r.Redact})
	if err != nil {
		return fmt.Errorf("prompt %s, version %d: %w", p.ID, p.Version, err)
	}
	def.Instructions = text
	def.Prompt = &messages.PromptRef{ID: ref.ID, Version: p.Version, Vars: ref.Vars}
	return nil
}
