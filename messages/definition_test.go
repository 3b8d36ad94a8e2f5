package messages_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
		"no planner":            {func(d *messages.Definition) { d.Planner = "" }, "planner", `"" is not a planner; known: tools, json, plan`},
		"long planner":          {func(d *messages.Definition) { d.Planner = long }, "planner", `"` + long[:64] + `…" is not a planner; known: tools, json, plan`},
		"long description":      {func(d *messages.Definition) { d.Description = long }, "description", "larger than 4096 bytes"},
		"NUL in instructions":   {func(d *messages.Definition) { d.Instructions = "\x00" }, "instructions", "holds a NUL character"},
		"broken instructions":   {func(d *messages.Definition) { d.Instructions = "\xff" }, "instructions", "invalid UTF-8"},
		"long model":            {func(d *messages.Definition) { d.Model = long }, "model", "larger than 256 bytes"},
		"models and a model":    {func(d *messages.Definition) { d.Models = []string{"a"} }, "models", "model is set too: name all models here, or one there"},
		"many models":           {func(d *messages.Definition) { d.Model, d.Models = "", many[:9] }, "models", "more than 8"},
		"a long one of them":    {func(d *messages.Definition) { d.Model, d.Models = "", []string{"a", long} }, "models[1]", "larger than 256 bytes"},
		"an empty one of them":  {func(d *messages.Definition) { d.Model, d.Models = "", []string{""} }, "models[0]", "is empty"},
		"a model twice":         {func(d *messages.Definition) { d.Model, d.Models = "", []string{"a", "b", "a"} }, "models[2]", "named twice"},
		"a price below nothing": {func(d *messages.Definition) { d.MaxPrice = new(-0.1) }, "maxPrice", "must be 0 or more"},
		"no price":              {func(d *messages.Definition) { d.MaxPrice = new(math.NaN()) }, "maxPrice", "must be 0 or more"},
		"any price":             {func(d *messages.Definition) { d.MaxPrice = new(math.Inf(1)) }, "maxPrice", "must be 0 or more"},
		"no steps":              {func(d *messages.Definition) { d.MaxSteps = 0 }, "maxSteps", "must be 1 to 10000"},
		"too many steps":        {func(d *messages.Definition) { d.MaxSteps = 10_001 }, "maxSteps", "must be 1 to 10000"},
		"no tokens":             {func(d *messages.Definition) { d.MaxTokens = -1 }, "maxTokens", "must be at least 1"},
		"cold":                  {func(d *messages.Definition) { d.Temperature = new(-0.1) }, "temperature", "must be 0 to 2"},
		"cache":                 {func(d *messages.Definition) { d.Temperature = new(0.1) }, "cache", "needs temperature 0"},
		"cache, no temperature": {func(d *messages.Definition) { d.Temperature = nil }, "cache", "needs temperature 0"},
		"hot":                   {func(d *messages.Definition) { d.Temperature = new(2.1) }, "temperature", "must be 0 to 2"},
		"no temperature":        {func(d *messages.Definition) { d.Temperature = new(math.NaN()) }, "temperature", "must be 0 to 2"},
		"unknown on tool error": {func(d *messages.Definition) { d.OnToolError = "stop" }, "onToolError", "must be model or fail"},
		"strange reasoning":     {func(d *messages.Definition) { d.Reasoning = "yes" }, "reasoning", "must be drop, keep or echo"},
		"on invalid output":     {func(d *messages.Definition) { d.OnInvalidOutput = "x" }, "onInvalidOutput", "must be model or fail"},
		"on truncated":          {func(d *messages.Definition) { d.OnTruncated = "x" }, "onTruncated", "must be fail or continue"},
		"negative parallel":     {func(d *messages.Definition) { d.Parallel = -1 }, "parallel", "must be 1 to 64"},
		"too parallel":          {func(d *messages.Definition) { d.Parallel = 65 }, "parallel", "must be 1 to 64"},
		"negative repeats":      {func(d *messages.Definition) { d.RepeatLimit = new(-1) }, "repeatLimit", "must be 0 to 1000"},
		"negative tool time":    {func(d *messages.Definition) { d.ToolTimeout = -1 }, "toolTimeout", "must be 1ms to 24h, or 0 for what the worker and the tool say"},
		"no time for a tool":    {func(d *messages.Definition) { d.ToolTimeout = 1 }, "toolTimeout", "must be 1ms to 24h, or 0 for what the worker and the tool say"},
		"a tool forever":        {func(d *messages.Definition) { d.ToolTimeout = messages.Duration(24*time.Hour + 1) }, "toolTimeout", "must be 1ms to 24h, or 0 for what the worker and the tool say"},
		"retries of no tool":    {func(d *messages.Definition) { d.ToolRetries = map[string]int{"x": 1} }, "toolRetries.x", "is none of the agent's tools"},
		"memory of a bad name":  {recalls(func(p *messages.RecallPolicy) { p.Collections = []string{"a b"} }), "memory.recall.collections[0]", `must be 1 to 64 characters of A-Z a-z 0-9 _ -`},
		"memory twice":          {recalls(func(p *messages.RecallPolicy) { p.Collections = []string{"a", "a"} }), "memory.recall.collections[1]", "is named twice"},
		"many memories":         {recalls(func(p *messages.RecallPolicy) { p.Collections = many[:9] }), "memory.recall.collections", "must be at most 8"},
		"memory of no scope":    {recalls(func(p *messages.RecallPolicy) { p.Scope = "x" }), "memory.recall.scope", "must be agent, session or tenant"},
		"too much memory":       {recalls(func(p *messages.RecallPolicy) { p.TopK = 51 }), "memory.recall.topK", "must be 1 to 50"},
		"too long a memory":     {recalls(func(p *messages.RecallPolicy) { p.Tokens = 32_001 }), "memory.recall.tokens", "must be 1 to 32000"},
		"a high score":          {recalls(func(p *messages.RecallPolicy) { p.MinScore = 1.1 }), "memory.recall.minScore", "must be 0 to 1"},
		"no score":              {recalls(func(p *messages.RecallPolicy) { p.MinScore = math.NaN() }), "memory.recall.minScore", "must be 0 to 1"},
		"a slow memory":         {recalls(func(p *messages.RecallPolicy) { p.Timeout = messages.Duration(time.Minute) }), "memory.recall.timeout", "must be at most 30s"},
		"examples without plan": {func(d *messages.Definition) { d.Planner, d.Plan, d.OutputSchema = messages.PlannerTools, nil, nil }, "memory.learn", "needs planner plan, not tools: what is learned are plans"},
		"examples for no time":  {func(d *messages.Definition) { d.Memory.Learn.TTL = 1 }, "memory.learn.ttl", "must be at least 1s"},
		"examples of no name":   {func(d *messages.Definition) { d.Memory.Learn.Collection = "a.b" }, "memory.learn.collection", `must be 1 to 64 characters of A-Z a-z 0-9 _ -`},
		"a reach of no name":    {func(d *messages.Definition) { d.Memory.Collections = []string{"*", "a*b"} }, "memory.collections[1]", "must be a collection's name, or the beginning of one and *"},
		"a reach twice":         {func(d *messages.Definition) { d.Memory.Collections = []string{"*", "*"} }, "memory.collections[1]", "is named twice"},
		"many reached":          {func(d *messages.Definition) { d.Memory.Collections = many[:33] }, "memory.collections", "must be at most 32"},
		"recall out of reach":   {func(d *messages.Definition) { d.Memory.Collections = []string{"facts", "plans"} }, "memory.recall.collections[1]", "manuals is not in memory.collections"},
		"facts out of reach": {func(d *messages.Definition) {
			d.Memory.Collections, d.Memory.Recall.Collections = []string{"man*"}, nil
		}, "memory.recall.collections", "facts is not in memory.collections"},
		"learns out of reach": {func(d *messages.Definition) { d.Memory.Collections = []string{"facts", "manuals"} }, "memory.learn.collection", "plans is not in memory.collections"},
		"examples unreached":  {func(d *messages.Definition) { d.Memory.Learn.Collection = "" }, "memory.learn.collection", "examples is not in memory.collections"},
		"nothing is reached":  {func(d *messages.Definition) { d.Memory.Collections = []string{} }, "memory.recall.collections[0]", "facts is not in memory.collections"},
		"many retries":        {func(d *messages.Definition) { d.ToolRetries = map[string]int{"read_file": 11} }, "toolRetries.read_file", "must be 0 to 10"},
		"a grant of nothing":  {func(d *messages.Definition) { d.Grants.Hosts = []string{"a", ""} }, "grants.hosts[1]", "is empty"},
		"a long grant":        {func(d *messages.Definition) { d.Grants.Methods = []string{long} }, "grants.methods[0]", "larger than 256 bytes"},
		"many grants":         {func(d *messages.Definition) { d.Grants.Credentials = make([]string, 257) }, "grants.credentials", "more than 256"},
		"a small method":      {func(d *messages.Definition) { d.Grants.Methods = []string{"get"} }, "grants.methods[0]", "must be a method in capitals, such as GET"},
		"a nameless database": {func(d *messages.Definition) { d.Grants.Databases = []string{""} }, "grants.databases[0]", "is empty"},
		"a long writable":     {func(d *messages.Definition) { d.Grants.Writable = []string{"a", long} }, "grants.writable[1]", "larger than 256 bytes"},
		"a nameless program":  {func(d *messages.Definition) { d.Grants.Programs = []string{""} }, "grants.programs[0]", "is empty"},
		"a long folder":       {func(d *messages.Definition) { d.Grants.Folders = []string{long} }, "grants.folders[0]", "larger than 256 bytes"},
		"a key for all":       {func(d *messages.Definition) { d.Grants.KV = "fleet" }, "grants.kv", "must be run, session or tenant"},
		"schema of a list":    {func(d *messages.Definition) { d.OutputSchema = []byte(`[]`) }, "outputSchema", "must be an object"},
		"schema of a bad type": {func(d *messages.Definition) {
			d.Planner, d.Plan, d.OutputSchema = messages.PlannerTools, nil, []byte(`{"type":"object","properties":{"urgent":{"type":"bool"}}}`)
		}, "outputSchema.properties.urgent.type", "must be one of string, number, integer, boolean, object, array, null, or an array of them"},
		"schema with two keys":  {func(d *messages.Definition) { d.OutputSchema = []byte(`{"type":1,"type":2}`) }, "outputSchema.type", "given twice"},
		"large schema":          {func(d *messages.Definition) { d.OutputSchema = []byte(`{"a":"` + strings.Repeat("x", 64<<10) + `"}`) }, "outputSchema", "larger than 65536 bytes"},
		"unknown prompt":        {func(d *messages.Definition) { d.Prompts = map[string]string{"x": ""} }, "prompts.x", "is unknown; known: observe, plan, protocol, summary"},
		"prompt without tools":  {func(d *messages.Definition) { d.Prompts = map[string]string{"protocol": "hi"} }, "prompts.protocol", "must hold {{tools}}"},
		"broken prompt":         {func(d *messages.Definition) { d.Prompts = map[string]string{"protocol": "\xff{{tools}}"} }, "prompts.protocol", "invalid UTF-8"},
		"hostile tool":          {func(d *messages.Definition) { d.Tools = []string{"a", "*"} }, "tools[1]", "must be 1 to 64 characters of A-Z a-z 0-9 _ -"},
		"tool twice":            {func(d *messages.Definition) { d.Tools = []string{"a", "b", "a"} }, "tools[2]", "named twice"},
		"unknown observe":       {func(d *messages.Definition) { d.Observe = "often" }, "observe", `"often" is not one of ["always" "on_failure" "never"]`},
		"unknown network error": {func(d *messages.Definition) { d.OnNetworkError = "wait" }, "onNetworkError", `"wait" is not one of ["park" "retry" "abort"]`},
		"plan with a schema":    {func(d *messages.Definition) { d.OutputSchema = []byte(`{}`) }, "outputSchema", "not supported with planner plan"},
		"planner and a schema":  {func(d *messages.Definition) { d.Plan, d.OutputSchema = nil, []byte(`{}`) }, "outputSchema", "not supported with planner plan"},
		"empty prompt":          {func(d *messages.Definition) { d.Prompts = map[string]string{"plan": ""} }, "prompts.plan", "is empty"},
		"plan without planner":  {func(d *messages.Definition) { d.Planner = messages.PlannerTools }, "plan", "needs planner plan, not tools"},
		"plan with a bad step":  {func(d *messages.Definition) { d.Plan.Steps[1].ID = "a" }, "plan.steps[1].id", `"a" is the id of steps[0] already`},
		"plan with a tool more": {func(d *messages.Definition) { d.Tools = []string{"b"} }, "plan.steps[0].tool", `Tool "read_file" not found. Allowed tools: b`},
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
		OnInvalidOutput: "model", OnTruncated: "fail", Parallel: 8, RepeatLimit: new(3),
	}, minimal)
	steps := messages.Definition{Name: "a", Planner: messages.PlannerJSON}
	if steps.SetDefaults(); steps.MaxSteps != 6 {
		t.Errorf("the planner json has %d steps", steps.MaxSteps)
	}
	for name, d := range map[string]messages.Definition{
		"minimal": minimal, "full": fullDefinition(), "built in": messages.BuiltinAgent(), "of run-lite": messages.BuiltinAgents()[1],
		"models": {
			Name: "a", Planner: "tools", MaxSteps: 1, MaxTokens: 1, OnToolError: "fail", Models: []string{"openai/gpt-4o", "local"}, MaxPrice: new(0.0),
		},
	} {
		if err := d.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An empty list of grants leaves nothing and stays one on the wire; an absent one leaves everything.
func TestEmptyGrantsLeaveNothing(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(messages.Grants{Hosts: []string{}})
	if err != nil || string(data) != `{"hosts":[]}` {
		t.Fatalf("%s, %v", data, err)
	}
	var g messages.Grants
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	if messages.Leaves(g.Hosts, "a.example") || !messages.Leaves(g.Methods, "GET") || messages.Leaves([]string{"a"}, "b") {
		t.Errorf("%+v leaves something else", g)
	}
}

// recalls changes what an agent recalls.
func recalls(change func(*messages.RecallPolicy)) func(*messages.Definition) {
	return func(d *messages.Definition) { change(d.Memory.Recall) }
}

// What an agent does not say of its memory has defaults.
func TestDefaultsOfMemory(t *testing.T) {
	t.Parallel()
	var none messages.Definition
	if none.RecallPolicy() != nil || none.LearnPolicy() != nil {
		t.Error("an agent without a policy recalls or learns")
	}
	d := messages.Definition{Memory: &messages.MemoryPolicy{Recall: &messages.RecallPolicy{}, Learn: &messages.LearnPolicy{}}}
	want := messages.RecallPolicy{Collections: []string{"facts"}, Scope: "agent", TopK: 5, Tokens: 1500, Timeout: messages.Duration(3 * time.Second)}
	if diff := cmp.Diff(&want, d.RecallPolicy()); diff != "" {
		t.Error(diff)
	}
	if got := *d.LearnPolicy(); got != (messages.LearnPolicy{Collection: "examples"}) {
		t.Errorf("%+v", got)
	}
}
