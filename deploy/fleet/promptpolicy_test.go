package fleet

import (
	"errors"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/policy"
)

func TestAgentsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	allowed := agentsWithoutSecrets(policy.NewRedactor("a-password-of-the-fleet"))
	good := messages.BuiltinAgent()
	if err := allowed(&good); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*messages.Definition){
		"agent.instructions":    func(d *messages.Definition) { d.Instructions = "Use a-password-of-the-fleet." },
		"agent.description":     func(d *messages.Definition) { d.Description = "It has sk-proj-abcdefghij1234567890." },
		"agent.prompts.observe": func(d *messages.Definition) { d.Prompts = map[string]string{"observe": "ghp_abcdefghij1234567890abcd"} },
		"agent.hooks[0].headers.X-Client": func(d *messages.Definition) {
			d.Hooks = []messages.Hook{{Headers: map[string]string{"X-Client": "AKIAIOSFODNN7EXAMPLE"}}}
		},
		"agent.tools[0]": func(d *messages.Definition) { d.Tools = []string{"a-password-of-the-fleet"} },
	} {
		d := messages.BuiltinAgent()
		change(&d)
		var field *messages.FieldError
		err := allowed(&d)
		if !errors.As(err, &field) || field.Field != want {
			t.Errorf("%s: got %v", want, err)
		} else if strings.Contains(err.Error(), "a-password") || strings.Contains(err.Error(), "abcdefghij") {
			t.Errorf("the error repeats it: %v", err)
		}
	}
}

func TestPromptsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	allowed := withoutSecrets(policy.NewRedactor("a-password-of-the-fleet"))
	if err := allowed(messages.Prompt{Text: "Be kind."}); err != nil {
		t.Error(err)
	}
	if err := allowed(messages.Prompt{Text: "Use sk-proj-abcdefghij1234567890."}); err == nil {
		t.Error("a prompt with a key is allowed")
	}
	var field *messages.FieldError
	err := allowed(messages.Prompt{Text: "Use a-password-of-the-fleet."})
	if !errors.As(err, &field) || field.Field != "prompt.text" || strings.Contains(err.Error(), "a-password") {
		t.Errorf("got %v", err)
	}
}
