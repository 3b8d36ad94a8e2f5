package fleet

import (
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/prompt"
	"github.com/longshore-run/longshore/worker/policy"
)

// withoutSecrets refuses prompts that hold a secret of this process: what is stored is read by many.
func withoutSecrets(redactor *policy.Redactor) prompt.Policy {
	return func(p messages.Prompt) error {
		if redactor.String(p.Text) != p.Text {
			return &messages.FieldError{Field: "prompt.text", Reason: "holds a secret of this fleet"}
		}
		return nil
	}
}
