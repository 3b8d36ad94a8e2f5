package agents_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/dispatcher/agents"
	"github.com/longshore-run/longshore/messages/control"
)

// A draft is a file or a definition alone, in YAML or JSON, and a mistake in it has its line.
func TestReadDraft(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: longshore.run/v1\nkind: Agent\nmetadata:\n  name: writer\n"
	for name, tt := range map[string]struct {
		text string
		want control.TextProblem // empty: it is fine
	}{
		"a file":                {head + "spec:\n  maxSteps: 3\n", control.TextProblem{}},
		"a file as JSON":        {`{"apiVersion":"longshore.run/v1","kind":"Agent","metadata":{"name":"writer"},"spec":{"maxSteps":3}}`, control.TextProblem{}},
		"a definition":          {"name: writer\nmaxSteps: 3\n", control.TextProblem{}},
		"a definition as JSON":  {`{"name": "writer", "maxSteps": 3, "revision": 7}`, control.TextProblem{}},
		"a field of a file":     {head + "spec:\n  maxStep: 3\n", control.TextProblem{Line: 6, Field: "spec.maxStep", Reason: "unknown field: did you mean maxSteps?"}},
		"a field":               {"name: writer\n\nmaxStep: 3\n", control.TextProblem{Line: 3, Field: "maxStep", Reason: "unknown field: did you mean maxSteps?"}},
		"a field of JSON":       {"{\n  \"name\": \"writer\",\n  \"maxStep\": 3\n}", control.TextProblem{Line: 3, Field: "maxStep", Reason: "unknown field: did you mean maxSteps?"}},
		"a value":               {"name: writer\ntools: [a]\napprove:\n  always:\n    - a\n    - c\n", control.TextProblem{Line: 6, Field: "approve.always[1]", Reason: `"c" is none of the agent's tools`}},
		"a name":                {head[:strings.Index(head, "writer")] + "wri ter\nspec: {}\n", control.TextProblem{Line: 4, Field: "metadata.name", Reason: "must be 1 to 64 characters of A-Z a-z 0-9 _ -"}},
		"no YAML":               {"name: writer\ntools: [a\n", control.TextProblem{Line: 3, Reason: "did not find expected ',' or ']'"}},
		"nothing":               {"", control.TextProblem{Reason: "the file is empty"}},
		"a list":                {"\n- name\n", control.TextProblem{Reason: "not a definition: it must have fields, such as name (line 2)"}},
		"two":                   {"name: a\n---\nname: b\n", control.TextProblem{Reason: "a second YAML document begins on line 3: give one document in each file"}},
		"a file without a kind": {"apiVersion: longshore.run/v1\nspec: {}\n", control.TextProblem{Field: "kind", Reason: "must be Agent"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := agents.ReadDraft(tt.text)
			if err == nil {
				if d.Agent.Name != "writer" || d.Agent.MaxSteps != 3 || d.Agent.Revision != 0 || tt.want.Reason != "" {
					t.Errorf("%+v, want %+v", d.Agent, tt.want)
				}
				return
			}
			if diff := cmp.Diff(tt.want, d.Problem(err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
