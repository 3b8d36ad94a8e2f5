package fleet

import (
	"fmt"
	"strings"

	"github.com/longshore-run/longshore/deploy/settings"
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

// Leaks tells which variables of an environment hold a secret that stands in a text, and in which line. It never shows
// the secret.
func Leaks(environ func() []string) func(text string) ([]string, error) {
	return func(text string) ([]string, error) {
		held, err := settings.HeldBy(environ())
		if err != nil {
			return nil, err
		}
		var out []string
		for _, h := range held {
			if at := policy.NewRedactor(h.Values...).Index(text); at >= 0 {
				out = append(out, fmt.Sprintf("line %d holds a secret of %s", 1+strings.Count(text[:at], "\n"), h.Variable))
			}
		}
		return out, nil
	}
}
