//go:build unix

package fleet_test

import (
	"strings"
	"testing"

	"github.com/longshore-run/longshore/dispatcher/webhook"
)

func TestWebhookKey(t *testing.T) {
	t.Parallel()
	secret := strings.Repeat("webhook secret ", 3)
	env := []string{"LONGSHORE_WEBHOOK_SECRET=" + secret}
	want := webhook.Key(secret, "acme")
	if got := call(t, env, "webhook-key", "--tenant", "acme"); got.code != 0 || got.stdout != want+"\n" {
		t.Errorf("%+v", got)
	}
	got := call(t, env, "webhook-key", "--tenant", "acme", "-o", "json")
	if told := decode[struct{ Key string }](t, got.stdout); got.code != 0 || told.Key != want {
		t.Errorf("%+v", got)
	}
	for name, tc := range map[string]struct {
		env  []string
		args string
		want string
	}{
		"no secret":        {nil, "--tenant=acme", "LONGSHORE_WEBHOOK_SECRET is missing"},
		"a strange tenant": {env, "--tenant=a.b", "--tenant"},
		"a strange output": {env, "--output=yaml", "text or json"},
	} {
		if got := call(t, tc.env, "webhook-key", tc.args); got.code != 2 || got.stdout != "" || !strings.Contains(got.stderr, tc.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
