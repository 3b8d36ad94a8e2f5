package fleet

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/longshore-run/longshore/deploy/settings"
)

// The rules of the fleet and of a tenant say what clients may write to its memory, as they say it of what models remember.
func TestMemoryRules(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	const rules = `apiVersion: longshore.run/v1
kind: Policy
spec:
  fleet:
    content:
      - {name: project, pattern: "(?i)zephyr", at: [arguments], tools: [remember]}
      - {name: weapons, pattern: harpoon, action: block}
      - {name: replies, pattern: tide, at: [reply]}
  tenants:
    keeping: {memory: keep}
    dropping: {memory: drop}
`
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	var s settings.Dispatcher
	if err := settings.Load(&s, []string{"NATS_URL=nats://127.0.0.1:4222", "LONGSHORE_ENCRYPTION=off", "LONGSHORE_POLICY=" + file}); err != nil {
		t.Fatal(err)
	}
	of := memoryRules(&s.Policy)
	for _, tc := range []struct {
		tenant, text, want string
		ok                 bool
	}{
		{"other", "Zephyr sails with the tide, says bob@example.com.", "[redacted] sails with the tide, says [redacted].", true},
		{"keeping", "Zephyr, says bob@example.com.", "[redacted], says bob@example.com.", true},
		{"other", "a harpoon", "", false},
		{"keeping", "a harpoon", "", false},
		{"dropping", "fine", "", false},
	} {
		if got, ok := of(tc.tenant)(tc.text); got != tc.want || ok != tc.ok {
			t.Errorf("%s: %q: %q, %t", tc.tenant, tc.text, got, ok)
		}
	}
	var none settings.Policy
	if got, ok := memoryRules(&none)("other")("Call bob@example.com."); got != "Call [redacted]." || !ok {
		t.Errorf("without a policy: %q, %t", got, ok)
	}
}
