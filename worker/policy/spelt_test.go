package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/worker/policy"
)

// A secret is found however each of its bytes is written.
func TestSpeltSecrets(t *testing.T) {
	const secret = "kex9-blé/77 🚢"
	r := policy.NewRedactor(secret)
	spell := func(format string) string {
		var b strings.Builder
		for i := range len(secret) {
			fmt.Fprintf(&b, format, secret[i])
		}
		return strings.TrimSuffix(b.String(), ", ")
	}
	units := `\u006b\u0065\u0078\u0039\u002d\u0062\u006c\u00e9\u002f\u0037\u0037\u0020\ud83d\udea2`
	for name, text := range map[string]string{
		"percent": spell("%%%02X"), "percent, lower": spell("%%%02x"), "numbers": spell("%d, "),
		"JSON": units, "JSON, upper": strings.ReplaceAll(strings.ToUpper(units), `\U`, `\u`), "JSON in JSON": strings.ReplaceAll(units, `\`, `\\`),
	} {
		if got := r.String("a " + text + " b"); got != "a "+policy.Mark+" b" {
			t.Errorf("%s: %q", name, got)
		}
	}
}
