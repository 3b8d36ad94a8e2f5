package prompt_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/prompt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const vars = `{"name":"Ada & <b>","n":3,"big":12345678,"on":true,"off":false,"none":null,"list":["a","b"],"people":[{"name":"Bo"},{"name":"Cy"}],"user":{"name":"Di"}}`

func given(t *testing.T, text string) prompt.Vars {
	t.Helper()
	v, err := prompt.ParseVars("vars", json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestRender(t *testing.T) {
	for name, tc := range map[string]struct{ engine, text, want string }{
		"text":                {"fstring", "Hello {name}, {n} {on} {list} {missing}.", `Hello Ada & <b>, 3 true ["a","b"] .`},
		"braces":              {"fstring", `{{"a": {n}}}`, `{"a": 3}`},
		"no engine":           {"", "{name}", "Ada & <b>"},
		"mustache":            {"mustache", "{{name}} {{big}} {{user.name}}{{! no }}", "Ada & <b> 12345678 Di"},
		"mustache sections":   {"mustache", "{{#people}}{{name}} {{n}};{{/people}}{{^off}}off{{/off}}{{#list}}{{.}}{{/list}}", "Bo 3;Cy 3;offab"},
		"handlebars":          {"handlebars", "{{name}} {{{name}}} {{big}} {{user.name}}, {{lookup user 'name'}}", "Ada & <b> Ada & <b> 12345678 Di, Di"},
		"handlebars blocks":   {"handlebars", "{{#each people}}{{@index}}{{name}}{{#unless @last}},{{/unless}}{{/each}}{{#if off}}x{{else}}y{{/if}}{{#with user}}{{name}}{{/with}}", "0Bo,1CyyDi"},
		"handlebars params":   {"handlebars", "{{#each list as |item|}}[{{item}}]{{/each}}{{#each none}}x{{else}}empty{{/each}}", "[a][b]empty"},
		"handlebars object":   {"handlebars", "{{#each user}}{{@key}}={{this}}{{/each}}", "name=Di"},
		"liquid":              {"liquid", "{{ name }} {{ big }} {{ user.name | upcase }} {{ missing | default: 'x' }} {{ list | join: '+' }}", "Ada & <b> 12345678 DI x a+b"},
		"liquid tags":         {"liquid", "{% for p in people %}{{ forloop.index }}{{ p.name }}{% unless forloop.last %},{% endunless %}{% endfor %}{% if on and n == 3 %}!{% endif %}", "1Bo,2Cy!"},
		"liquid assign":       {"liquid", "{% assign a = name | size | plus: 1 %}{{ a }}{% case n %}{% when 3 %}three{% endcase %}{% raw %}{{ x }}{% endraw %}", "10three{{ x }}"},
		"liquid whitespace":   {"liquid", "a {%- if on -%} b {%- endif -%} c", "abc"},
		"liquid loop control": {"liquid", "{% for i in list %}{% if i == 'b' %}{% break %}{% endif %}{{ i }}{% endfor %}", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := prompt.Render(messages.Prompt{ID: "p", Engine: tc.engine, Text: tc.text}, given(t, vars), prompt.Options{})
			if err != nil || got != tc.want {
				t.Errorf("%q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

func TestHostileTemplatesAreRefusedOrEnd(t *testing.T) {
	many := make([]int, 1000)
	list, err := json.Marshal(map[string]any{"l": many, "s": strings.Repeat("x", 200<<10)})
	if err != nil {
		t.Fatal(err)
	}
	nest := func(n int, open, shut string) string { return strings.Repeat(open, n) + strings.Repeat(shut, n) }
	for name, tc := range map[string]struct{ engine, text, want string }{
		"fstring expression":      {"fstring", "{name.upper()}", "is not a variable"},
		"fstring open":            {"fstring", "a {", "is not closed"},
		"fstring shut":            {"fstring", "a }", "stands alone"},
		"fstring output":          {"fstring", "{s}{s}", "makes more than"},
		"mustache file":           {"mustache", "{{> /etc/passwd}}", "may not include"},
		"mustache deep file":      {"mustache", "{{#l}}{{> /etc/passwd}}{{/l}}", "may not include"},
		"mustache delimiters":     {"mustache", "{{=<% %>=}}<%> /etc/passwd%>", "delimiters"},
		"mustache open":           {"mustache", "{{#l}}", "Section"},
		"mustache loops":          {"mustache", nest(20, "{{#l}}", "{{/l}}"), "takes "},
		"mustache output":         {"mustache", "{{#l}}{{s}}{{/l}}", "makes more than"},
		"mustache last output":    {"mustache", "{{s}}{{s}}", "makes more than"},
		"mustache depth":          {"mustache", nest(800, "{{#l}}", "{{/l}}"), ""},
		"handlebars file":         {"handlebars", "{{> passwd}}", "may not include"},
		"handlebars inner file":   {"handlebars", "{{#if s}}{{> (lookup . 'x')}}{{/if}}", "may not include"},
		"handlebars log":          {"handlebars", "{{log 'x'}}", "not a helper"},
		"handlebars bare log":     {"handlebars", "{{log}}", "is a helper"},
		"handlebars regexp":       {"handlebars", "{{#ifMatchesRegexStr 'a' s}}x{{/ifMatchesRegexStr}}", "must be if"},
		"handlebars call":         {"handlebars", "{{s 'x'}}", "not a helper"},
		"handlebars section":      {"handlebars", "{{#l}}{{#l}}x{{/l}}{{/l}}", "must be if"},
		"handlebars loops":        {"handlebars", nest(20, "{{#each @root.l}}", "{{/each}}"), "takes "},
		"handlebars output":       {"handlebars", "{{#each l}}{{@root.s}}{{/each}}", "makes more than"},
		"handlebars many":         {"handlebars", strings.Repeat("{{s}}", 10_000), "too many tags"},
		"handlebars two":          {"handlebars", "{{s}}{{s}}", "makes more than"},
		"handlebars depth":        {"handlebars", nest(800, "{{#if l}}", "{{/if}}"), ""},
		"handlebars open":         {"handlebars", "{{#if l}}", "Parse error"},
		"liquid file":             {"liquid", "{% include '/etc/passwd' %}", "the tag include"},
		"liquid file in raw":      {"liquid", "{% raw %}{% comment %}{% endraw %}{% include '/etc/passwd' %}", "the tag include"},
		"liquid file in comment":  {"liquid", "{% comment %}{% comment %}{% endcomment %}{% include '/etc/passwd' %}{% endcomment %}", "the tag include"},
		"liquid render":           {"liquid", "{% render 'x' %}", "the tag render"},
		"liquid capture":          {"liquid", "{% capture a %}{{ s }}{% endcapture %}", "the tag capture"},
		"liquid range":            {"liquid", "{% for i in (1..1000000000) %}{% endfor %}", "ranges"},
		"liquid range in an if":   {"liquid", "{% if (1..1000000000) contains 5 %}{% endif %}", "ranges"},
		"liquid range in assign":  {"liquid", "{% assign a = (1..1000000000) | size %}", "ranges"},
		"liquid range printed":    {"liquid", "{{ (1..1000000000) | json }}", ""},
		"liquid loops":            {"liquid", nest(20, "{% for i in l %}", "{% endfor %}"), "takes "},
		"liquid output":           {"liquid", "{% for i in l %}{{ s }}{% endfor %}", "makes more than"},
		"liquid doubling":         {"liquid", "{% for i in l %}{% assign s = s | append: s %}{% endfor %}", "makes more than"},
		"liquid replace":          {"liquid", "{{ s | replace: 'x', s }}", "makes more than"},
		"liquid work":             {"liquid", strings.Repeat("{% assign a = s | upcase %}", 200), "on the way"},
		"liquid split":            {"liquid", "{% for i in l %}{% assign a = s | split: '' %}{% endfor %}", "on the way"},
		"liquid filter":           {"liquid", "{{ s | date: '%999999999d' }}", "undefined filter"},
		"liquid own tag":          {"liquid", "{% longshore_turn %}", "the tag longshore_turn"},
		"liquid cycles":           {"liquid", "{% cycle 'a' %}", "the tag cycle"},
		"liquid open":             {"liquid", "{% for i in l %}", "unterminated"},
		"liquid depth":            {"liquid", nest(800, "{% if l %}", "{% endif %}"), ""},
		"liquid division by none": {"liquid", "{{ 1 | divided_by: 0 }}", "undefined filter"},
		"unknown engine":          {"jinja", "x", "is not known"},
		"a large text":            {"fstring", strings.Repeat("x", 64<<10+1), "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := prompt.Render(messages.Prompt{ID: "p", Engine: tc.engine, Text: tc.text}, given(t, string(list)), prompt.Options{})
			var field *messages.FieldError
			if err != nil && strings.HasSuffix(tc.want, "than") || tc.want == "on the way" {
				// On a machine that is busy, the time may run out before what is looked for.
				if strings.Contains(fmt.Sprint(err), "takes longer than 1s") {
					return
				}
			}
			switch {
			case tc.want == "" && (err == nil || errors.As(err, &field)) && len(got) <= 256<<10:
			case !errors.As(err, &field) || !strings.Contains(err.Error(), tc.want) || tc.want == "" || got != "":
				t.Errorf("%.100q, %v; want %q", got, err, tc.want)
			case strings.ContainsAny(err.Error(), "\n") || len(err.Error()) > 400:
				t.Errorf("the error is long: %q", err)
			}
		})
	}
}

// A value cannot bring code or tags with it.
func TestValuesAreTextOnly(t *testing.T) {
	v := prompt.Vars{"x": "{{y}}{% include 'a' %}{y}", "y": "secret", "f": map[string]any{"String": "field"}}
	for engine, text := range map[string]string{"fstring": "{x}", "mustache": "{{x}}", "handlebars": "{{x}}", "liquid": "{{ x }}"} {
		got, err := prompt.Render(messages.Prompt{ID: "p", Engine: engine, Text: text}, v, prompt.Options{})
		if err != nil || got != "{{y}}{% include 'a' %}{y}" {
			t.Errorf("%s: %q, %v", engine, got, err)
		}
	}
	for engine, text := range map[string]string{"mustache": "{{x.Len}}{{x.String}}", "handlebars": "{{x.String}}{{x.Len}}", "liquid": "{{ x.Len }}"} {
		got, err := prompt.Render(messages.Prompt{ID: "p", Engine: engine, Text: text}, v, prompt.Options{})
		if err != nil || got != "" {
			t.Errorf("%s calls a method: %q, %v", engine, got, err)
		}
	}
}

func TestMissingVariables(t *testing.T) {
	for engine, text := range map[string]string{
		"fstring": "{a}{b}", "mustache": "{{a}}{{b.c}}", "handlebars": "{{a}}{{#if b}}x{{/if}}", "liquid": "{{ a }}{% if b %}x{% endif %}",
	} {
		t.Run(engine, func(t *testing.T) {
			p := messages.Prompt{ID: "p", Engine: engine, Text: text}
			if _, err := prompt.Render(p, prompt.Vars{"a": "1"}, prompt.Options{}); err != nil {
				t.Errorf("not strict: %v", err)
			}
			_, err := prompt.Render(p, prompt.Vars{"a": "1"}, prompt.Options{ThrowOnMissing: true})
			if diff := cmp.Diff("vars: missing: b", fmt.Sprint(err)); diff != "" {
				t.Errorf("strict: %s", diff)
			}
			if _, err := prompt.Render(p, prompt.Vars{"a": "1", "b": nil}, prompt.Options{ThrowOnMissing: true}); err != nil {
				t.Errorf("null counts as given: %v", err)
			}
			p.RequiredVars = []string{"b"}
			if _, err := prompt.Render(p, prompt.Vars{"a": "1"}, prompt.Options{}); fmt.Sprint(err) != "vars: missing: b" {
				t.Errorf("required: %v", err)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	refuse := func(messages.Prompt) error { return errors.New("holds a key") }
	for name, tc := range map[string]struct {
		prompt messages.Prompt
		policy prompt.Policy
		want   control.PromptVerdict
	}{
		"right": {messages.Prompt{ID: "p", Text: "{b}{a}{a}", RequiredVars: []string{"a"}}, nil, control.PromptVerdict{OK: true, Vars: []string{"a", "b"}}},
		"not used": {messages.Prompt{ID: "p", Text: "{a}", RequiredVars: []string{"b"}}, nil, control.PromptVerdict{
			Vars: []string{"a"}, Errors: []string{"requiredVars[0]: the text does not name b"}, Problems: []control.TextProblem{{Field: "requiredVars[0]", Reason: "the text does not name b"}},
		}},
		"broken": {messages.Prompt{ID: "p", Text: "{b}\n{{\n{a"}, nil, control.PromptVerdict{
			Errors: []string{"text: line 3: a { is not closed; two are one"}, Problems: []control.TextProblem{{Line: 3, Field: "text", Reason: "a { is not closed; two are one"}},
		}},
		"unfinished": {messages.Prompt{ID: "p", Engine: "liquid", Text: "\n{% if a %}\n"}, nil, control.PromptVerdict{
			Errors:   []string{`text: Liquid error (line 2): unterminated "if" block in {% if a %}`},
			Problems: []control.TextProblem{{Line: 2, Field: "text", Reason: `Liquid error (line 2): unterminated "if" block in {% if a %}`}},
		}},
		"no id": {messages.Prompt{Text: "x"}, nil, control.PromptVerdict{
			Errors: []string{"id: must be 1 to 64 characters of A-Z a-z 0-9 _ -"}, Problems: []control.TextProblem{{Field: "id", Reason: "must be 1 to 64 characters of A-Z a-z 0-9 _ -"}},
		}},
		"policy":     {messages.Prompt{ID: "p", Text: "x"}, refuse, control.PromptVerdict{Errors: []string{"policy: holds a key"}, Problems: []control.TextProblem{{Field: "policy", Reason: "holds a key"}}}},
		"items":      {messages.Prompt{ID: "p", Engine: "mustache", Text: "{{#l}}{{x}}{{/l}}", RequiredVars: []string{"x"}}, nil, control.PromptVerdict{OK: true, Vars: []string{"l", "x"}}},
		"liquid":     {messages.Prompt{ID: "p", Engine: "liquid", Text: "{% assign q = a.b | default: c %}{% for i in d %}{{ i.x }}{{ e }}{% endfor %}{{ q }}{{ 'no' }}"}, nil, control.PromptVerdict{OK: true, Vars: []string{"a", "c", "d", "e"}}},
		"handlebars": {messages.Prompt{ID: "p", Engine: "handlebars", Text: "{{#each d as |i|}}{{i.x}}{{@root.r}}{{/each}}{{lookup a b}}"}, nil, control.PromptVerdict{OK: true, Vars: []string{"a", "b", "d", "r"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, prompt.Validate(tc.prompt, tc.policy)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestResolve(t *testing.T) {
	r := prompt.Resolver{Get: func(_ context.Context, id string, version uint64) (messages.Prompt, error) {
		if id != "review" {
			return messages.Prompt{}, messages.ErrUnknownPrompt
		}
		if version == 0 {
			version = 9
		}
		return messages.Prompt{ID: id, Version: version, Text: "Be {tone}. Look at {what}."}, nil
	}}
	task := &messages.Task{Context: json.RawMessage(`{"what":"tests","tone":"rude"}`)}
	def := messages.Definition{Prompt: &messages.PromptRef{ID: "review", Vars: json.RawMessage(`{"tone":"kind"}`)}}
	if err := r.Resolve(t.Context(), &def, task); err != nil {
		t.Fatal(err)
	}
	if def.Instructions != "Be kind. Look at tests." || def.Prompt.Version != 9 {
		t.Errorf("%+v, %+v", def, def.Prompt)
	}
	var field *messages.FieldError
	def = messages.Definition{Prompt: &messages.PromptRef{ID: "review"}}
	if err := r.Resolve(t.Context(), &def, &messages.Task{}); !errors.As(err, &field) || !strings.Contains(err.Error(), "missing: tone, what") {
		t.Errorf("nothing given: %v", err)
	}
	def = messages.Definition{Prompt: &messages.PromptRef{ID: "other"}}
	if err := r.Resolve(t.Context(), &def, &messages.Task{}); !errors.Is(err, messages.ErrUnknownPrompt) {
		t.Errorf("unknown: %v", err)
	}
	plain := messages.Definition{Instructions: "x"}
	if err := r.Resolve(t.Context(), &plain, &messages.Task{}); err != nil || plain.Instructions != "x" {
		t.Errorf("no prompt: %v, %+v", err, plain)
	}
}

func FuzzRender(f *testing.F) {
	for i, text := range []string{"{a}", "{{#a}}{{b}}{{/a}}", "{{#each a}}{{this}}{{/each}}", "{% for i in a %}{{ i | upcase }}{% endfor %}"} {
		f.Add(uint8(i), text)
	}
	f.Fuzz(func(t *testing.T, engine uint8, text string) {
		p := messages.Prompt{ID: "p", Engine: messages.Engines()[int(engine)%4], Text: text}
		got, err := prompt.Render(p, prompt.Vars{"a": []any{"x", "y"}, "b": map[string]any{"c": "d"}}, prompt.Options{})
		var field *messages.FieldError
		if err != nil && !errors.As(err, &field) || len(got) > 256<<10 {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	})
}
