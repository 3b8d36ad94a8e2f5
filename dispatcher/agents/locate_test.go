package agents_test

import (
	"strings"
	"testing"

	"github.com/longshore-run/longshore/dispatcher/agents"
)

// A misspelling is reported with its line and the name that was probably meant.
func TestErrorsNameLineAndNearestField(t *testing.T) {
	const head = "apiVersion: longshore.run/v1\nkind: Agent\nmetadata:\n  name: writer\n"
	for name, tt := range map[string]struct{ file, want string }{
		"a field":         {head + "spec:\n  maxStep: 3\n", "spec.maxStep: unknown field: did you mean maxSteps? (line 6)"},
		"in other case":   {head + "spec:\n  maxsteps: 3\n", "spec.maxsteps: unknown field: did you mean maxSteps? (line 6)"},
		"of the metadata": {strings.Replace(head, "name:", "naem:", 1), "metadata.naem: unknown field: did you mean name? (line 4)"},
		"at the top":      {"apiVersion: longshore.run/v1\nknd: Agent\n", "knd: unknown field: did you mean kind? (line 2)"},
		"nothing near":    {head + "spec:\n  colour: red\n", "spec.colour: unknown field (line 6)"},
		"a wrong value":   {head + "spec:\n  instructions: x\n  maxSteps: -1\n", "(line 7)"},
	} {
		_, err := agents.Parse([]byte(tt.file))
		if err == nil || !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}
