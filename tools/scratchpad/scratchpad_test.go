package scratchpad_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	pad "github.com/longshore-run/longshore/messages/scratchpad"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/scratchpad"
	"github.com/longshore-run/longshore/tools/toolstest"
)

func made(t *testing.T) map[string]tools.Tool {
	t.Helper()
	ts, err := scratchpad.Tools()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]tools.Tool{}
	for _, tool := range ts {
		out[strings.TrimPrefix(tool.Spec().Name, "scratchpad_")] = tool
	}
	return out
}

func TestConformance(t *testing.T) {
	for name, cases := range map[string][]toolstest.Case{
		"append": {{Arguments: `{"text":"Berth 4"}`}, {Arguments: `{"text":" "}`, Fails: true}, {Arguments: `{"text":"x","stream":"a/b"}`, Fails: true}},
		"read":   {{Arguments: `{}`}, {Arguments: `{"limit":257}`, Fails: true}, {Arguments: `{"stream":"\u0000"}`, Fails: true}},
		"search": {{Arguments: `{"text":"berth"}`}, {Arguments: `{"text":""}`, Fails: true}, {Arguments: `{"text":"x","limit":-1}`, Fails: true}},
		"clear":  {{Arguments: `{"stream":"todo"}`}, {Arguments: `{"stream":""}`, Fails: true}},
	} {
		t.Run(name, func(t *testing.T) { toolstest.Run(t, made(t)[name], cases...) })
	}
}

// call makes a call on a scratchpad, and then what it says of it.
func call(t *testing.T, p *pad.Pad, tool, key, args string, rules func(string) (string, bool)) tools.Result {
	t.Helper()
	r, err := made(t)[tool].Call(t.Context(), tools.Call{Key: key, Arguments: json.RawMessage(args), Scratchpad: p.Clone(), Remember: rules})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Memory {
		switch c.Op {
		case messages.MemoryAppend:
			p.Append(pad.Note{ID: c.ID, Stream: c.Name, Text: c.Text})
		case messages.MemoryClear:
			p.Clear(c.Name)
		}
	}
	return r
}

func TestNotes(t *testing.T) {
	var p pad.Pad
	call(t, &p, "append", "k1", `{"text":"Berth 4 is free"}`, nil)
	call(t, &p, "append", "k2", `{"text":"ask the Ada","stream":"todo"}`, nil)
	call(t, &p, "append", "k2", `{"text":"ask the Ada","stream":"todo"}`, nil) // as after a crash
	for _, tc := range []struct{ tool, args, want string }{
		{"read", `{}`, "[k1] notes: Berth 4 is free\n[k2] todo: ask the Ada"},
		{"read", `{"after":"k1"}`, "[k2] todo: ask the Ada"},
		{"read", `{"stream":"none"}`, "There are no such notes. Streams with notes: notes, todo."},
		{"read", `{"limit":1}`, "[k2] todo: ask the Ada\nOlder notes that are not shown: 1. Read them with a larger limit."},
		{"search", `{"text":"ADA"}`, "[k2] todo: ask the Ada"},
		{"clear", `{"stream":"todo"}`, "Notes removed from todo: 1."},
		{"read", `{}`, "[k1] notes: Berth 4 is free"},
	} {
		if r := call(t, &p, tc.tool, "k3", tc.args, nil); r.IsError || r.Content[0].Text != tc.want {
			t.Errorf("%s %s: %+v", tc.tool, tc.args, r)
		}
	}
}

// Rules decide what a note keeps before it is one.
func TestNotesPassTheRules(t *testing.T) {
	var p pad.Pad
	call(t, &p, "append", "k1", `{"text":"write to bob"}`, func(s string) (string, bool) { return strings.ReplaceAll(s, "bob", "[redacted]"), true })
	r := call(t, &p, "append", "k2", `{"text":"write to ann"}`, func(string) (string, bool) { return "", false })
	if len(p.Notes) != 1 || p.Notes[0].Text != "write to [redacted]" {
		t.Errorf("%+v", p.Notes)
	}
	if !r.IsError || len(r.Memory) != 0 || r.Content[0].Text != "Nothing was kept: the rules of this run do not allow it." {
		t.Errorf("%+v", r)
	}
}

func TestEvictionIsAnnounced(t *testing.T) {
	var p pad.Pad
	for i := range pad.MaxNotes {
		p.Append(pad.Note{ID: string(rune('a' + i)), Stream: "s", Text: "x"})
	}
	r := call(t, &p, "append", "k1", `{"text":"one more"}`, nil)
	if !strings.HasSuffix(r.Content[0].Text, "The oldest notes were removed to make room for it: 1.") || r.Memory[0].Evicted != 1 {
		t.Errorf("%+v", r)
	}
}

// A model can read all notes in pages, each after the one before.
func TestNotesInPages(t *testing.T) {
	var p pad.Pad
	for _, id := range []string{"a", "b", "c", "d"} {
		p.Append(pad.Note{ID: id, Stream: "s", Text: id})
	}
	for after, want := range map[string]string{
		"a": "[b] s: b\n[c] s: c\nMore notes follow: 1. Read them with after c.", "c": "[d] s: d", "d": "There are no such notes. Streams with notes: s.",
	} {
		if got := call(t, &p, "read", "k", `{"limit":2,"after":"`+after+`"}`, nil).Content[0].Text; got != want {
			t.Errorf("after %s: %q, want %q", after, got, want)
		}
	}
}
