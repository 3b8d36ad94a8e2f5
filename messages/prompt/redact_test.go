package prompt_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/prompt"
)

const token = "kex9-blue-harbour-77"

func hide(s string) string { return strings.ReplaceAll(s, token, "[redacted]") }

func TestRedact(t *testing.T) {
	vars := `{"env":"TOKEN=` + token + ` & <b>","list":["` + token + `","x"],"user":{"t":"` + token + `"},"n":7}`
	for name, tc := range map[string]struct{ engine, text, want string }{
		"liquid":                 {"liquid", "{{ env | redact }}, {{ user.t | redact | upcase }}", "TOKEN=[redacted] & <b>, [REDACTED]"},
		"liquid, joined":         {"liquid", "{{ list | join: '+' | redact }}{% for l in list %} {{ l | redact }}{% endfor %}", "[redacted]+x [redacted] x"},
		"liquid, JSON":           {"liquid", "{{ user | json | redact }}", `{"t":"[redacted]"}`},
		"liquid, no text":        {"liquid", "{{ n | redact }}{{ none | redact }}", "7"},
		"handlebars":             {"handlebars", "{{redact env}}, {{redact user.t}}", "TOKEN=[redacted] & <b>, [redacted]"},
		"handlebars, inner":      {"handlebars", "{{#each list}}{{redact this}} {{/each}}{{redact (lookup list 0)}}", "[redacted] x [redacted]"},
		"handlebars, conditions": {"handlebars", "{{#if (redact env)}}{{redact n}}{{redact none}}{{/if}}", "7"},
	} {
		t.Run(name, func(t *testing.T) {
			p := messages.Prompt{ID: "p", Engine: tc.engine, Text: tc.text}
			got, err := prompt.Render(p, given(t, vars), prompt.Options{Redact: hide})
			if err != nil || got != tc.want {
				t.Errorf("%q, %v; want %q", got, err, tc.want)
			}
			// Without secrets to look for, values stay as they are.
			if got, err = prompt.Render(p, given(t, vars), prompt.Options{}); err != nil || strings.Contains(strings.ToLower(got), "redacted") {
				t.Errorf("without: %q, %v", got, err)
			}
		})
	}
}

func TestRedactIsBounded(t *testing.T) {
	big, err := json.Marshal(map[string]any{"s": strings.Repeat("a", 200<<10), "l": make([]int, 200)})
	if err != nil {
		t.Fatal(err)
	}
	grow := func(s string) string { return s + s }
	for name, tc := range map[string]struct{ engine, text, want string }{
		"liquid":               {"liquid", strings.Repeat("{% assign x = s | redact %}", 2000), "on the way"},
		"liquid, output":       {"liquid", "{{ s | redact | size }}", "makes more than"},
		"handlebars":           {"handlebars", "{{#each l}}{{#if (redact @root.s)}}{{/if}}{{/each}}", "on the way"},
		"handlebars, output":   {"handlebars", "{{#if (redact s)}}{{/if}}", "makes more than"},
		"handlebars, value":    {"handlebars", "{{redact}}", "redact is a helper"},
		"handlebars, too many": {"handlebars", "{{redact s s}}", "redact takes one value"},
		"handlebars, option":   {"handlebars", "{{redact s by=s}}", "redact takes one value"},
	} {
		t.Run(name, func(t *testing.T) {
			o := prompt.Options{Redact: hide}
			if strings.HasSuffix(name, "output") {
				o.Redact = grow
			}
			got, err := prompt.Render(messages.Prompt{ID: "p", Engine: tc.engine, Text: tc.text}, given(t, string(big)), o)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%.100q, %v; want %s", got, err, tc.want)
			}
		})
	}
}

func TestResolveRedacts(t *testing.T) {
	r := prompt.Resolver{Redact: hide, Get: func(context.Context, string, uint64) (messages.Prompt, error) {
		return messages.Prompt{ID: "p", Version: 1, Engine: messages.EngineLiquid, Text: "Log: {{ log | redact }}"}, nil
	}}
	def := messages.Definition{Prompt: &messages.PromptRef{ID: "p"}}
	task := &messages.Task{Context: json.RawMessage(`{"log":"used ` + token + `"}`)}
	if err := r.Resolve(t.Context(), &def, task); err != nil || def.Instructions != "Log: used [redacted]" {
		t.Errorf("%q, %v", def.Instructions, err)
	}
}
