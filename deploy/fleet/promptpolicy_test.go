package fleet

import (
	"errors"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/policy"
)

func TestPromptsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	allowed := withoutSecrets(policy.NewRedactor("a-password-of-the-fleet"))
	if err := allowed(messages.Prompt{Text: "Be kind."}); err != nil {
		t.Error(err)
	}
	var field *messages.FieldError
	err := allowed(messages.Prompt{Text: "Use a-password-of-the-fleet."})
	if !errors.As(err, &field) || field.Field != "prompt.text" || strings.Contains(err.Error(), "a-password") {
		t.Errorf("got %v", err)
	}
}
