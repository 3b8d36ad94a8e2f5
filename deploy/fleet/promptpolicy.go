package fleet

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/prompt"
	"github.com/longshore-run/longshore/messages/sensitive"
	"github.com/longshore-run/longshore/worker/policy"
)

// withoutSecrets refuses prompts that hold a secret of this process, or what looks like a key: what is stored is read by many.
func withoutSecrets(redactor *policy.Redactor) prompt.Policy {
	return func(p messages.Prompt) error {
		if why := holdsSecret(redactor, p.Text); why != "" {
			return &messages.FieldError{Field: "prompt.text", Reason: why}
		}
		return nil
	}
}

// agentsWithoutSecrets is withoutSecrets for all texts of agents.
func agentsWithoutSecrets(redactor *policy.Redactor) func(*messages.Definition) error {
	return func(d *messages.Definition) error {
		data, err := json.Marshal(d)
		if err != nil {
			return err
		}
		var tree any
		if err := json.Unmarshal(data, &tree); err != nil {
			return err
		}
		return secretIn(redactor, "agent", tree)
	}
}

// secretIn is the first text in a tree that holds a secret, as an error that names its field.
func secretIn(redactor *policy.Redactor, field string, v any) error {
	switch v := v.(type) {
	case string:
		if why := holdsSecret(redactor, v); why != "" {
			return &messages.FieldError{Field: field, Reason: why}
		}
	case []any:
		for i := range v {
			if err := secretIn(redactor, fmt.Sprintf("%s[%d]", field, i), v[i]); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if err := secretIn(redactor, field+" (the name of a field in it)", name); err != nil {
				return err
			}
			if err := secretIn(redactor, field+"."+name, v[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

// holdsSecret says which kind of secret a text holds; empty for none.
func holdsSecret(redactor *policy.Redactor, text string) string {
	switch {
	case redactor.Index(text) >= 0:
		return "holds a secret of this fleet: name a credential of the operator's instead"
	case len(sensitive.Find("key", text)) > 0:
		return "holds what looks like a key or token: name a credential of the operator's instead"
	default:
		return ""
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
