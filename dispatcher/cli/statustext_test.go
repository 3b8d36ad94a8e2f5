package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
)

func TestStatusOfAWebhook(t *testing.T) {
	for want, s := range map[string]*messages.WebhookState{
		"webhook  pending\n":                               {State: messages.WebhookPending},
		"webhook  delivered\n":                             {State: messages.WebhookDelivered},
		"webhook  dead after 1 attempt: it answered 410\n": {State: messages.WebhookDead, Attempts: 1, LastError: "it answered 410"},
		"webhook  dead after 12 attempts: a\\x1bb\n":       {State: messages.WebhookDead, Attempts: 12, LastError: "a\x1bb"},
	} {
		var b strings.Builder
		err := writeStatus(&b, &messages.RunStatus{ID: "r", Status: messages.StatusCompleted, Webhook: s}, time.Now())
		if err != nil || !strings.HasSuffix(b.String(), want) {
			t.Errorf("%q, want %q at its end: %v", b.String(), want, err)
		}
	}
}
