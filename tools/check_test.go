package tools_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
)

const searchSchema = `{"type":"object","additionalProperties":false,"required":["query"],"properties":{
	"query":{"type":"string","minLength":2},
	"limit":{"type":"integer","minimum":1,"maximum":50},
	"ratio":{"type":["number","null"]},
	"order":{"type":"string","enum":["asc","desc"]},
	"tags":{"type":"array","items":{"type":"string"}},
	"range":{"type":"object","additionalProperties":false,"required":["from"],"properties":{"from":{"type":"integer"}}}}}`

func searchSet(tb testing.TB) (*tools.Set, []messages.ToolSpec) {
	tb.Helper()
	s, err := tools.NewSet(stub{spec: spec("search", searchSchema)}, stub{spec: spec("ping", anyObject)},
		stub{spec: spec("hidden", anyObject)})
	if err != nil {
		tb.Fatal(err)
	}
	allowed, err := s.Specs([]string{"search", "ping"})
	if err != nil {
		tb.Fatal(err)
	}
	return s, allowed
}

func TestCheckAdmits(t *testing.T) {
	s, allowed := searchSet(t)
	for _, c := range []struct{ tool, args, want string }{
		{"search", `{"query":"go"}`, `{"query":"go"}`},
		{"search", "\n {\"query\":\"go\", \"limit\": 50}\t", `{"query":"go", "limit": 50}`},
		{"search", `{"query":"go","ratio":null,"order":"asc","tags":["a"],"range":{"from":9007199254740993}}`, ""},
		{"search", `{"query":"go","ratio":1,"limit":2.0}`, ""},
		{"ping", ``, `{}`},
		{"ping", "  \n", `{}`},
		{"ping", `{"anything":[1e3,null]}`, ""},
	} {
		if c.want == "" {
			c.want = c.args
		}
		got, refusal := s.Check(messages.ToolCall{Name: c.tool, Arguments: c.args}, allowed)
		if refusal != nil {
			t.Errorf("%s was refused: %s", c.args, refusal.Content[0].Text)
		} else if diff := cmp.Diff(c.want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.args, diff)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	s, allowed := searchSet(t)
	known := "(known: limit, order, query, range, ratio, tags)"
	bad := "Invalid arguments for search: "
	object := bad + "they must be one JSON object: "
	for name, c := range map[string]struct{ tool, args, want string }{
		"unknown tool":    {"x", `{}`, `Tool "x" not found. Allowed tools: search, ping`},
		"not allowed":     {"hidden", `{}`, `Tool "hidden" not found. Allowed tools: search, ping`},
		"other case":      {"Search", `{}`, `Tool "Search" not found. Allowed tools: search, ping`},
		"hostile name":    {"a\n\x1b\"", `{}`, `Tool "a\n\x1b\"" not found. Allowed tools: search, ping`},
		"long name":       {strings.Repeat("n", 1000), ``, `Tool "` + strings.Repeat("n", 64) + `… (936 more bytes)" not found. Allowed tools: search, ping`},
		"empty":           {"search", ``, bad + `"query" is missing.`},
		"cut off":         {"search", `{"query":"g`, bad + `"query": not valid JSON: it ends too early.`},
		"prose":           {"search", `search for go`, object + "not valid JSON at byte 0."},
		"two values":      {"search", `{"query":"go"}{}`, ""},
		"array":           {"search", `["go"]`, bad + "the arguments must be an object, not an array."},
		"null":            {"search", `null`, object + "null is not allowed."},
		"string":          {"search", `"{\"query\":\"go\"}"`, bad + "the arguments must be an object, not a string."},
		"doubled":         {"search", `{"query":"go","query":"no"}`, bad + `"query": given twice.`},
		"doubled inside":  {"search", `{"query":"go","range":{"from":1,"from":2}}`, bad + `"range.from": given twice.`},
		"half surrogate":  {"search", `{"query":"\ud800"}`, ""},
		"not UTF-8":       {"search", "{\"query\":\"a\xff\"}", bad + `"query": invalid UTF-8.`},
		"deep":            {"search", `{"query":` + strings.Repeat("[", 100_000), ""},
		"large":           {"search", `{"query":"` + strings.Repeat("x", 1<<20) + `"}`, bad + "they are larger than 1048576 bytes."},
		"case of a key":   {"search", `{"Query":"go"}`, bad + `"query" is missing; "Query" is unknown ` + known + "."},
		"wrong types":     {"search", `{"query":1,"limit":"5","tags":{}}`, bad + `"limit" must be an integer, not a string; "query" must be a string, not an integer; "tags" must be an array, not an object.`},
		"fraction":        {"search", `{"query":"go","limit":1.5}`, bad + `"limit" must be an integer, not a number.`},
		"one of types":    {"search", `{"query":"go","ratio":true}`, bad + `"ratio" must be a number or null, not a boolean.`},
		"huge number":     {"search", `{"query":"go","ratio":1e400}`, ""},
		"enum":            {"search", `{"query":"go","order":"up"}`, bad + `"order" must be one of ["asc","desc"].`},
		"item":            {"search", `{"query":"go","tags":["a",2]}`, bad + `"tags[1]" must be a string, not an integer.`},
		"nested missing":  {"search", `{"query":"go","range":{}}`, bad + `"range.from" is missing.`},
		"nested unknown":  {"search", `{"query":"go","range":{"from":1,"to":2}}`, bad + `"range.to" is unknown (known: from).`},
		"other keywords":  {"search", `{"query":"g","limit":51}`, bad + `"limit" must fit {"type":"integer","minimum":1,"maximum":50}; "query" must fit {"type":"string","minLength":2}.`},
		"many wrong ones": {"search", `{"query":"go","1":0,"2":0,"3":0,"4":0,"5":0,"6":0,"7":0,"8":0,"9":0,"a":0,"b":0}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			args, refusal := s.Check(messages.ToolCall{Name: c.tool, Arguments: c.args}, allowed)
			if refusal == nil || args != nil {
				t.Fatalf("it was not refused: %s", args)
			}
			if !refusal.IsError || refusal.Code != messages.CodeInvalidInput {
				t.Errorf("result is %+v", refusal)
			}
			text := refusal.Content[0].Text
			if c.want == "" {
				t.Logf("%s", text)
			} else if diff := cmp.Diff(c.want, text); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if len(text) > 4000 {
				t.Errorf("the text has %d bytes", len(text))
			}
		})
	}
}

func TestCheckOfRulesAcrossFields(t *testing.T) {
	either := `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"oneOf":[{"required":["a"]},{"required":["b"]}]}`
	s := newSet(t, stub{spec: spec("either", either)})
	allowed := []messages.ToolSpec{spec("either", either), spec("elsewhere", anyObject)}
	_, refusal := s.Check(messages.ToolCall{Name: "either", Arguments: `{"a":"1","b":"2"}`}, allowed)
	if refusal == nil || !strings.HasPrefix(refusal.Content[0].Text, `Invalid arguments for either: the arguments must fit {"type":"object"`) {
		t.Errorf("refusal is %+v", refusal)
	}
	// Allowed to the run, but this worker has no such tool.
	_, refusal = s.Check(messages.ToolCall{Name: "elsewhere", Arguments: `{}`}, allowed)
	if refusal == nil || refusal.Content[0].Text != `Tool "elsewhere" not found. Allowed tools: either` {
		t.Errorf("refusal is %+v", refusal)
	}
	_, refusal = s.Check(messages.ToolCall{Name: "either", Arguments: `{}`}, nil)
	if refusal == nil || refusal.Content[0].Text != `Tool "either" not found. Allowed tools: none` {
		t.Errorf("refusal is %+v", refusal)
	}
}

func FuzzCheck(f *testing.F) {
	for _, args := range []string{
		``, `{}`, `{"query":"go"}`, `{"query":"go","limit":1e2}`, `null`, `[[[`, `{"query":"\ud800\udc00"}`, `{"a":{"b":[1,{"c":-0.0}]}}`,
		`{"query":"go","ratio":1e-999999}`, "{\"\xff\":1}", `{"query":"go","range":{"from":9223372036854775808}}`, `{} x`,
	} {
		f.Add("search", args)
		f.Add("ping", args)
	}
	s, allowed := searchSet(f)
	f.Fuzz(func(t *testing.T, name, args string) {
		call := messages.ToolCall{ID: "1", Name: name, Arguments: args}
		got, refusal := s.Check(call, allowed)
		if (got == nil) == (refusal == nil) {
			t.Fatalf("both or none: %q, %+v", got, refusal)
		}
		if refusal != nil {
			if text := refusal.Content[0].Text; text == "" || !utf8.ValidString(text) || len(text) > 10_000 {
				t.Fatalf("text is %q", text)
			}
			return
		}
		var v map[string]any
		if err := json.Unmarshal(got, &v); err != nil || v == nil {
			t.Fatalf("%q passed, which is no object: %v", got, err)
		}
		if _, ok := v["query"].(string); name == "search" && !ok {
			t.Fatalf("%q passed without a query", got)
		}
		if again, refusal := s.Check(call, allowed); refusal != nil || string(again) != string(got) {
			t.Fatalf("the second check differs: %q, %+v", again, refusal)
		}
	})
}
