//go:build unix

package prompt_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/prompt"
)

// cpu is what this process has used of all processors. Unlike the time that passes it does not grow while others are busy.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// maxCPU is five times what the dearest of these prompts took with the race detector.
const maxCPU = 10 * time.Second

// A hostile prompt ends soon, and takes little memory, whatever it repeats.
func TestRendersAreBounded(t *testing.T) {
	big := strings.Repeat("x", 200<<10)
	nested := map[string]any{}
	for i := range 10_000 {
		nested[fmt.Sprint("key", i)] = []any{i, "v"}
	}
	list := make([]any, 20_000)
	for i := range list {
		list[i] = i
	}
	times := func(s string) string { return strings.Repeat(s, messages.MaxPromptText/len(s)) }
	for name, c := range map[string]struct {
		engine, text string
		vars         map[string]any
		mib          uint64 // that it made when it was measured with the race detector, which makes the most of it
	}{
		"range":                   {messages.EngineLiquid, `{{ (1..400000000) | join }}`, nil, 0},
		"range, no spaces":        {messages.EngineLiquid, `{{(1..400000000)|size}}`, nil, 0},
		"range, trimmed":          {messages.EngineLiquid, `{{- (1..400000000) | last -}}`, nil, 0},
		"range of a variable":     {messages.EngineLiquid, `{{ (a..b) | first }}`, map[string]any{"a": 1, "b": 400000000}, 0},
		"range of variables' own": {messages.EngineLiquid, `{{ (n.a..n.b) | json }}`, map[string]any{"n": map[string]any{"a": 1, "b": 400000000}}, 0},
		"range beside texts":      {messages.EngineLiquid, `{{ "'" | append: '"' }}{{ (1..400000000) | join: "'" }}`, nil, 0},
		"range in an argument":    {messages.EngineLiquid, `{{ nil | default: (1..400000000) | join }}`, nil, 0},
		"range that is assigned":  {messages.EngineLiquid, `{% assign a = (1..400000000) %}{{ a | join }}`, nil, 0},
		"range in a loop":         {messages.EngineLiquid, `{% for i in (1..400000000) %}{% endfor %}`, nil, 0},
		"range in a condition":    {messages.EngineLiquid, `{% if (1..400000000) contains 0 %}{% endif %}`, nil, 0},
		"range in a case":         {messages.EngineLiquid, `{% case (1..400000000) %}{% when 1 %}{% endcase %}`, nil, 0},
		"range after a comment":   {messages.EngineLiquid, `{% comment %}{% raw %}{% endcomment %}{{ (1..400000000) | join }}`, nil, 0},
		"range after raw":         {messages.EngineLiquid, `{% raw %}{% comment %}{% endraw %}{{ (1..400000000) | join }}`, nil, 0},
		"texts that double":       {messages.EngineLiquid, `{% assign x = "xxxxxxxxxxxxxxxx" %}` + strings.Repeat(`{% assign x = x | append: x %}`, 1500), nil, 128},
		"lists of letters":        {messages.EngineLiquid, times(`{% assign x = a | split: "" %}`), map[string]any{"a": big}, 244},
		"joined lists":            {messages.EngineLiquid, times(`{% assign x = a | join: "," %}`), map[string]any{"a": list}, 228},
		"sizes":                   {messages.EngineLiquid, times(`{{a|size}}`), map[string]any{"a": strings.Repeat("é", 100<<10)}, 477},
		"defaults":                {messages.EngineLiquid, `{{ a` + times(`|default:1`)[:60<<10/10*10] + ` | size }}`, map[string]any{"a": big}, 11},
		"replaced":                {messages.EngineLiquid, times(`{% assign x = a | replace: "x", a %}`), map[string]any{"a": big}, 187},
		"texts of objects":        {messages.EngineLiquid, times(`{% assign x = a | json %}`), map[string]any{"a": nested}, 203},
		"loops in loops":          {messages.EngineLiquid, strings.Repeat(`{% for i in a %}`, 20) + strings.Repeat(`{% endfor %}`, 20), map[string]any{"a": list}, 53},
		"loops of work":           {messages.EngineLiquid, `{% for i in a limit: 400000000 %}{% if b contains "y" %}{% endif %}{% endfor %}`, map[string]any{"a": list, "b": strings.Repeat("x", 100<<10)}, 13},
		"mustache, objects":       {messages.EngineMustache, times(`{{a}}`), map[string]any{"a": nested}, 7},
		"mustache, nested":        {messages.EngineMustache, strings.Repeat(`{{#a}}`, 20) + strings.Repeat(`{{/a}}`, 20), map[string]any{"a": list}, 46},
		"mustache, sections":      {messages.EngineMustache, times(`{{#a}}x{{/a}}`), map[string]any{"a": list}, 12},
		"handlebars, objects":     {messages.EngineHandlebars, times(`{{a}}`), map[string]any{"a": nested}, 907},
		"handlebars, nested":      {messages.EngineHandlebars, strings.Repeat(`{{#each a}}`, 20) + strings.Repeat(`{{/each}}`, 20), map[string]any{"a": list}, 47},
		"handlebars, in a loop":   {messages.EngineHandlebars, `{{#each a}}` + strings.Repeat(`{{@root.b}}`, 20) + `{{/each}}`, map[string]any{"a": list[:5000], "b": big}, 56},
		"handlebars, lookups":     {messages.EngineHandlebars, times(`{{lookup (lookup a 1) 1}}`), map[string]any{"a": list}, 362},
		"handlebars, deep":        {messages.EngineHandlebars, strings.Repeat(`{{#with a}}`, 2500) + strings.Repeat(`{{/with}}`, 2500), map[string]any{"a": nested}, 335},
		"f-string":                {messages.EngineFString, times(`{a}`), map[string]any{"a": nested}, 8},
	} {
		t.Run(name, func(t *testing.T) {
			if vars, err := json.Marshal(c.vars); err != nil || len(vars) > 256<<10 {
				t.Fatalf("%d bytes of values are more than a request may have: %v", len(vars), err)
			}
			p := messages.Prompt{Engine: c.engine, Text: c.text}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			begun := cpu(t)
			out, err := prompt.Render(p, c.vars, prompt.Options{})
			took := cpu(t) - begun
			runtime.ReadMemStats(&after)
			made := after.TotalAlloc - before.TotalAlloc
			if most := 3*c.mib + 1; made > most<<20 {
				t.Errorf("it made %d MiB, more than %d", made>>20, most)
			}
			if took > maxCPU {
				t.Errorf("it took %v of a processor, more than %v", took, maxCPU)
			}
			if strings.Contains(name, "range") && (err == nil || !strings.Contains(err.Error(), "may not use ranges")) {
				t.Errorf("a range: %.100s, %v", out, err)
			}
			t.Logf("%v, %d MiB, %d bytes, %v", took, made>>20, len(out), err)
		})
	}
}
