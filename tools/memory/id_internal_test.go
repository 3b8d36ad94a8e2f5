package memory

import (
	"strconv"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/sensitive"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/tools"
)

// No rule about keys and personal data takes an id for one, so that a model can name it.
func TestIDsAreNotSensitive(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for i := range 10_000 {
		id := idOf(tools.Call{Run: messages.Ref{Tenant: "acme", Run: "r"}, Key: strconv.Itoa(i)})
		text := "Kept in facts as " + id + "."
		if sensitive.Redact(text) != text || !strict.ValidToken(id) || seen[id] {
			t.Fatalf("%q: %q", text, sensitive.Redact(text))
		}
		seen[id] = true
	}
}
