package runner

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-run/longshore/messages"
)

// prompt fills in the prompt that an agent names. It happens once, before the first record: an edit of the prompt never
// changes a run. A *messages.RunError says why it cannot be done; any other error is the platform's.
func (x *claimer) prompt(ctx context.Context, def *messages.Definition, task *messages.Task) error {
	if def.Prompt == nil {
		return nil
	}
	why := func(reason any) error {
		return &messages.RunError{Code: messages.CodeInvalidInput, Message: fmt.Sprintf("agent %s: %v", def.Name, reason)}
	}
	if x.cfg.Prompt == nil {
		return why("this worker has no prompts")
	}
	err := x.cfg.Prompt(ctx, def, task)
	field, wrong := errors.AsType[*messages.FieldError](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, messages.ErrUnknownPrompt), wrong && field != nil:
		return why(err)
	default:
		return fmt.Errorf("resolve the prompt of agent %s: %w", def.Name, err)
	}
}
