package messages_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
)

func TestDefinitionValidate(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 10<<10)
	var many []string
	for i := range 257 {
		many = append(many, fmt.Sprintf("tool%d", i))
	}
	for name, tc := range map[string]struct {
		change        func(*messages.Definition)
		field, reason string
	}{
		"no name":               {func(d *messages.Definition) { d.Name = "" }, "name", "must be 1 to 64 characters of A-Z a-z 0-9 _ -"},
		"hostile name":          {func(d *messages.Definition) { d.Name = "a.>" }, "name", "must be 1 to 64 characters of A-Z a-z 0-9 _ -"},
		"no planner":            {func(d *messages.Definition) { d.Planner = "" }, "planner", `"" is not a planner; known: tools`},
		"long planner":          {func(d *messages.Definition) { d.Planner = long }, "planner", `"` + long[:64] + `…" is not a planner; known: tools`},
		"long description":      {func(d *messages.Definition) { d.Description = long }, "description", "larger than 4096 bytes"},
		"NUL in instructions":   {func(d *messages.Definition) { d.Instructions = "\x00" }, "instructions", "holds a NUL character"},
		"broken instructions":   {func(d *messages.Definition) { d.Instructions = "\xff" }, "instructions", "invalid UTF-8"},
		"long model":            {func(d *messages.Definition) { d.Model = long }, "model", "larger than 256 bytes"},
		"no steps":              {func(d *messages.Definition) { d.MaxSteps = 0 }, "maxSteps", "must be 1 to 10000"},
		"too many steps":        {func(d *messages.Definition) { d.MaxSteps = 10_001 }, "maxSteps", "must be 1 to 10000"},
		"no tokens":             {func(d *messages.Definition) { d.MaxTokens = -1 }, "maxTokens", "must be at least 1"},
		"cold":                  {func(d *messages.Definition) { d.Temperature = new(-0.1) }, "temperature", "must be 0 to 2"},
		"cache":                 {func(d *messages.Definition) { d.Temperature = new(0.1) }, "cache", "needs temperature 0"},
		"cache, no temperature": {func(d *messages.Definition) { d.Temperature = nil }, "cache", "needs temperature 0"},
		"hot":                   {func(d *messages.Definition) { d.Temperature = new(2.1) }, "temperature", "must be 0 to 2"},
		"no temperature":        {func(d *messages.Definition) { d.Temperature = new(math.NaN()) }, "temperature", "must be 0 to 2"},
		"unknown on tool error": {func(d *messages.Definition) { d.OnToolError = "stop" }, "onToolError", "must be model or fail"},
		"hostile tool":          {func(d *messages.Definition) { d.Tools = []string{"a", "*"} }, "tools[1]", "must be 1 to 64 characters of A-Z a-z 0-9 _ -"},
		"tool twice":            {func(d *messages.Definition) { d.Tools = []string{"a", "b", "a"} }, "tools[2]", "named twice"},
		"too many tools":        {func(d *messages.Definition) { d.Tools = many }, "tools", "more than 256"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := fullDefinition()
			tc.change(&d)
			err := d.Validate()
			wantFieldError(t, name, err)
			noDiff(t, "error", error(&messages.FieldError{Field: tc.field, Reason: tc.reason}), err)
		})
	}
}

func TestDefinitionsThatAreValid(t *testing.T) {
	t.Parallel()
	minimal := messages.Definition{Name: "a"}
	minimal.SetDefaults()
	noDiff(t, "defaults", messages.Definition{
		Name: "a", Planner: "tools", MaxSteps: 25, MaxTokens: 4096, OnToolError: "model",
	}, minimal)
	for name, d := range map[string]messages.Definition{
		"minimal": minimal, "full": fullDefinition(), "built in": messages.BuiltinAgent(),
	} {
		if err := d.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
