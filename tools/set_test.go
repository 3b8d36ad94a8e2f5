package tools_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
)

// stub is a tool made of its parts.
type stub struct {
	spec messages.ToolSpec
	call func(context.Context, tools.Call) (tools.Result, error)
}

func (s stub) Spec() messages.ToolSpec { return s.spec }

func (s stub) Call(ctx context.Context, c tools.Call) (tools.Result, error) { return s.call(ctx, c) }

// hurried is a stub with a timeout of its own.
type hurried struct {
	stub
	timeout time.Duration
}

func (h hurried) Timeout() time.Duration { return h.timeout }

const anyObject = `{"type":"object"}`

func spec(name, schema string) messages.ToolSpec {
	return messages.ToolSpec{
		Name: name, Description: "A tool.", InputSchema: json.RawMessage(schema), Effect: messages.EffectRead,
	}
}

func newSet(t *testing.T, ts ...tools.Tool) *tools.Set {
	t.Helper()
	s, err := tools.NewSet(ts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNewSetRefuses(t *testing.T) {
	good := stub{spec: spec("good", anyObject)}
	with := func(change func(*messages.ToolSpec)) tools.Tool {
		s := spec("bad", anyObject)
		change(&s)
		return stub{spec: s}
	}
	schema := func(s string) tools.Tool {
		return with(func(spec *messages.ToolSpec) { spec.InputSchema = json.RawMessage(s) })
	}
	for name, c := range map[string]struct {
		tool tools.Tool
		want string
	}{
		"nil":            {nil, "tool 1 is nil"},
		"taken name":     {good, `tool "good": the name is taken by another tool`},
		"empty name":     {with(func(s *messages.ToolSpec) { s.Name = "" }), `tool "": the name must be 1 to 64 characters`},
		"malformed name": {with(func(s *messages.ToolSpec) { s.Name = "reаd" }), "the name must be 1 to 64 characters"}, // with a Cyrillic letter
		"long name":      {with(func(s *messages.ToolSpec) { s.Name = strings.Repeat("n", 65) }), "the name must be"},
		"no description": {with(func(s *messages.ToolSpec) { s.Description = " " }), "the description is empty"},
		"no effect":      {with(func(s *messages.ToolSpec) { s.Effect = "" }), `effect "" is not one of`},
		"no timeout":     {hurried{stub: stub{spec: spec("h", anyObject)}}, "timeout 0s is not more than zero"},
		"no schema":      {schema(``), `tool "bad": input schema: `},
		"not JSON":       {schema(`{"type"`), "not valid JSON"},
		"doubled key":    {schema(`{"type":"object","type":"object"}`), "given twice"},
		"not of object":  {schema(`{"type":"string"}`), `"type" must be "object"`},
		"true":           {schema(`true`), `"type" must be "object"`},
		"two types":      {schema(`{"type":["object","null"]}`), `"type" must be "object"`},
		"other draft":    {schema(`{"type":"object","$schema":"http://json-schema.org/draft-04/schema#"}`), "not supported"},
		"remote ref":     {schema(`{"type":"object","properties":{"a":{"$ref":"https://example.com/x"}}}`), "$ref is not supported"},
		"ref loop":       {schema(`{"type":"object","allOf":[{"$ref":"#"}]}`), "$ref is not supported"},
		"bad pattern":    {schema(`{"type":"object","properties":{"a":{"type":"string","pattern":"("}}}`), `property "a"`},
		"null property":  {schema(`{"type":"object","properties":{"a":null}}`), `property "a"`},
		"bad keyword":    {schema(`{"type":"object","required":"a"}`), "input schema"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tools.NewSet(good, c.tool)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestPropertyNamedRefIsNoReference(t *testing.T) {
	newSet(t, stub{spec: spec("a", `{"type":"object","properties":{"$ref":{"type":"string"}}}`)})
}

func TestSpecsAndEffect(t *testing.T) {
	once := spec("b", anyObject)
	once.Effect = messages.EffectOnce
	s := newSet(t, stub{spec: spec("a", anyObject)}, stub{spec: once}, stub{spec: spec("c", anyObject)})
	got, err := s.Specs([]string{"c", "b"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]messages.ToolSpec{spec("c", anyObject), once}, got); diff != "" {
		t.Errorf("specs (-want +got):\n%s", diff)
	}
	_, err = s.Specs([]string{"a", "d"})
	if err == nil || err.Error() != `tool "d" is unknown; known: a, b, c` {
		t.Errorf("error is %v", err)
	}
	for name, want := range map[string]messages.Effect{
		"a": messages.EffectRead, "b": messages.EffectOnce, "unknown": messages.EffectOnce,
	} {
		if got := s.Effect(name); got != want {
			t.Errorf("effect of %s is %s, want %s", name, got, want)
		}
	}
}
