package runs

import (
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

func TestStatusOfAWebhook(t *testing.T) {
	for want, s := range map[string]*control.WebhookState{
		"pending":                               {State: control.WebhookPending},
		"delivered":                             {State: control.WebhookDelivered},
		"dead after 1 attempt: it answered 410": {State: control.WebhookDead, Attempts: 1, LastError: "it answered 410"},
		"dead after 12 attempts: a\\x1bb":       {State: control.WebhookDead, Attempts: 12, LastError: "a\x1bb"},
	} {
		var b strings.Builder
		k := card{RunStatus: &control.RunStatus{ID: "r", Status: messages.StatusCompleted, Webhook: s}}
		if err := k.write(&b, time.Now(), render.PlainWidth, false); err != nil || !strings.Contains(b.String(), "\nwebhook  "+want+"\n") {
			t.Errorf("%q, want %q in it: %v", b.String(), want, err)
		}
	}
}
