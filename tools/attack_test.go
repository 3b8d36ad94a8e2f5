package tools_test

import (
	"context"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
)

// reading counts what a tool with typed arguments is called with.
type reading struct {
	Path string         `json:"path"`
	From int64          `json:"from,omitempty"`
	More map[string]any `json:"more,omitempty"`
}

// Attacks 105 to 113: arguments that two readers would read in two ways, or that cost much to read. The numbers are those of the list of
// attacks. What is refused never reaches the tool; nesting is refused from 64 on, before anything recurses.
func TestAttacks105To113Arguments(t *testing.T) {
	var got []reading
	tool, err := tools.Func(spec("read", ""), func(_ context.Context, _ tools.Call, in reading) (tools.Result, error) {
		got = append(got, in)
		return tools.Text("done"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s := newSet(t, tool)
	call := func(args string) *tools.Result {
		checked, refusal := s.Check(messages.ToolCall{Name: "read", Arguments: args}, []messages.ToolSpec{tool.Spec()})
		if refusal != nil {
			return refusal
		}
		r, err := s.Call(t.Context(), "read", tools.Call{Arguments: checked})
		if err != nil {
			t.Fatal(err)
		}
		return &r
	}
	nested := func(n int) string {
		return `{"path":"a","more":{"x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}}`
	}
	for name, args := range map[string]string{
		"105 doubled":               `{"path":"a","path":"../b"}`,
		"105 doubled, escaped":      `{"path":"a","p\u0061th":"../b"}`,
		"105 doubled below":         `{"path":"a","more":{"x":1,"x":2}}`,
		"106 another case":          `{"Path":"a"}`,
		"106 another case, too":     `{"path":"a","FROM":1}`,
		"106 folded":                `{"path":"a","\u017from":1}`,
		"107 unknown":               `{"path":"a","sudo":true}`,
		"108 beyond floats":         `{"path":"a","more":{"x":1e400}}`,
		"108 beyond integers":       `{"path":"a","from":9223372036854775808}`,
		"108 a fraction":            `{"path":"a","from":1.5}`,
		"108 a million digits":      `{"path":"a","from":` + strings.Repeat("9", 1_000_000) + `}`,
		"108 a large exponent":      `{"path":"a","from":1e999999999}`,
		"109 nested":                nested(64),
		"109 nested without end":    `{"path":"a","more":{"x":` + strings.Repeat("[", 1_000_000),
		"110 large":                 `{"path":"` + strings.Repeat("a", 1<<20) + `"}`,
		"111 not UTF-8":             "{\"path\":\"\xff\"}",
		"111 half of a pair":        `{"path":"\ud800"}`,
		"111 the other half":        `{"path":"\udc00\ud800"}`,
		"112 two objects":           `{"path":"a"}{"path":"b"}`,
		"112 more after it":         `{"path":"a"} rm -rf /`,
		"112 NaN":                   `{"path":"a","from":NaN}`,
		"112 byte order mark":       "\ufeff" + `{"path":"a"}`,
		"112 a comment":             `{"path":"a"/*,"path":"b"*/}`,
		"113 null":                  `null`,
		"113 an array":              `[{"path":"a"}]`,
		"113 a string":              `"{\"path\":\"a\"}"`,
		"113 a number":              `1`,
		"113 null in place of text": `{"path":null}`,
	} {
		t.Run(name, func(t *testing.T) {
			if r := call(args); !r.IsError || r.Code != messages.CodeInvalidInput || len(r.Content[0].Text) > 4000 {
				t.Errorf("it was not refused: %+v", r)
			}
		})
	}
	if len(got) > 0 {
		t.Fatalf("the tool was called with %+v", got)
	}
	for name, c := range map[string]struct {
		args string
		want int64
	}{
		"108 beyond 2^53":   {`{"path":"a","from":9007199254740993}`, 9007199254740993},
		"108 minus zero":    {`{"path":"a","from":-0}`, 0},
		"108 the largest":   {`{"path":"a","from":9223372036854775807}`, 9223372036854775807},
		"109 nested enough": {nested(61), 0},
	} {
		t.Run(name, func(t *testing.T) {
			got = nil
			if r := call(c.args); r.IsError || len(got) != 1 || got[0].From != c.want {
				t.Errorf("result %+v, the tool was called with %+v", r, got)
			}
		})
	}
}

// Attack 115: names that look like that of a tool are none, and no tool may have one.
func TestAttack115Names(t *testing.T) {
	s := newSet(t, stub{spec: spec("read_file", anyObject)})
	for _, name := range []string{"re\u0430d_file", "read_file ", "\uff52ead_file", "Read_File", "read-file", "read_file\x00", "read_\u200bfile", "functions.read_file", ""} {
		_, refusal := s.Check(messages.ToolCall{Name: name, Arguments: "{}"}, []messages.ToolSpec{spec("read_file", anyObject)})
		if refusal == nil || !strings.HasSuffix(refusal.Content[0].Text, "not found. Allowed tools: read_file") {
			t.Errorf("%q: %+v", name, refusal)
		}
	}
	for _, name := range []string{"re\u0430d_file", "read_file ", "\uff52ead_file", "read_file\x00", "read_\u200bfile", "functions.read_file", ""} {
		if _, err := tools.NewSet(stub{spec: spec(name, anyObject)}); err == nil {
			t.Errorf("%q is the name of a tool", name)
		}
	}
	if _, err := tools.NewSet(stub{spec: spec("read_file", anyObject)}, stub{spec: spec("read_file", anyObject)}); err == nil {
		t.Error("two tools have a name") // 116
	}
}
