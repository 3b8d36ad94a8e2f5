package tools_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
)

type greeting struct {
	Name  string   `json:"name"            jsonschema:"Who is greeted"`
	Times int      `json:"times,omitempty"`
	Notes []string `json:"notes,omitempty"`
}

func greet(_ context.Context, _ tools.Call, in greeting) (tools.Result, error) {
	return tools.Text(strings.Repeat("Hello "+in.Name+"! ", max(1, in.Times))), nil
}

func TestFuncInfersAStrictSchema(t *testing.T) {
	tool, err := tools.Func(spec("greet", ""), greet)
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal(tool.Spec().InputSchema, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"type": "object", "additionalProperties": false, "required": []any{"name"},
		"properties": map[string]any{
			"name":  map[string]any{"type": "string", "description": "Who is greeted"},
			"times": map[string]any{"type": "integer"},
			"notes": map[string]any{"type": []any{"null", "array"}, "items": map[string]any{"type": "string"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("schema (-want +got):\n%s", diff)
	}
	s := newSet(t, tool)
	for args, want := range map[string]string{
		`{"name":"Ada","times":2}`:    "Hello Ada! Hello Ada! ",
		`{"name":"Ada","notes":null}`: "Hello Ada! ",
		// Both fit the schema, and an int holds neither.
		`{"name":"Ada","times":9223372036854775808}`: `Invalid arguments for greet: "times" must not be number 9223372036854775808.`,
		`{"name":"Ada","times":2.0}`:                 `Invalid arguments for greet: "times" must not be number 2.0.`,
	} {
		raw, refusal := s.Check(messages.ToolCall{Name: "greet", Arguments: args}, []messages.ToolSpec{tool.Spec()})
		if refusal != nil {
			t.Errorf("%s was refused: %v", args, refusal.Content)
			continue
		}
		r, err := s.Call(t.Context(), "greet", tools.Call{Arguments: raw})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, r.Content[0].Text); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args, diff)
		}
		if failed := strings.HasPrefix(want, "Invalid"); r.IsError != failed || failed != (r.Code == messages.CodeInvalidInput) {
			t.Errorf("%s: result is %+v", args, r)
		}
	}
}

func TestFuncRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		make func() (tools.Tool, error)
		want string
	}{
		"loose schema": {
			func() (tools.Tool, error) { return tools.Func(spec("greet", anyObject), greet) },
			`tool "greet": input schema: "additionalProperties" must be false`,
		},
		"broken schema": {
			func() (tools.Tool, error) { return tools.Func(spec("greet", `{`), greet) },
			`tool "greet": input schema: `,
		},
		"not a struct": {
			func() (tools.Tool, error) {
				return tools.Func(spec("n", ""), func(context.Context, tools.Call, int) (tools.Result, error) { return tools.Result{}, nil })
			},
			`tool "n": infer input schema: int is not a struct`,
		},
		"no JSON": {
			func() (tools.Tool, error) {
				return tools.Func(spec("c", ""), func(context.Context, tools.Call, struct{ C chan int }) (tools.Result, error) {
					return tools.Result{}, nil
				})
			},
			`tool "c": infer input schema: `,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := c.make(); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("error is %v, want %s", err, c.want)
			}
		})
	}
}
