package agents_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/dispatcher/agents"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/agent"
)

const writer = `
apiVersion: longshore.run/v1
kind: Agent
metadata: {name: writer, description: Writes.}
spec:
  instructions: You write.
  tools: [write_file]
  maxSteps: 8
  temperature: 0
`

// parseOne reads a file of one definition.
func parseOne(data []byte) (messages.Definition, error) {
	defs, err := agents.Parse(data)
	if err != nil {
		return messages.Definition{}, err
	}
	if len(defs) != 1 {
		return messages.Definition{}, fmt.Errorf("%d definitions", len(defs))
	}
	return defs[0], nil
}

// A file may hold several documents, as what kubectl applies: none is dropped.
func TestParseReadsEachDocument(t *testing.T) {
	const second = "apiVersion: longshore.run/v1\nkind: Agent\nmetadata: {name: reviewer}\n"
	got, err := agents.Parse([]byte(writer + "---\n# nothing\n---\n" + second + "---\n"))
	if err != nil || len(got) != 2 || got[0].Name != "writer" || got[1].Name != "reviewer" {
		t.Fatalf("%+v, %v", got, err)
	}
	line := strings.Count(writer, "\n") + 2 // of what follows the separator
	for name, tt := range map[string]struct{ file, want string }{
		"a wrong second":  {second + "spec: {maxStep: 3}\n", fmt.Sprintf("document on line %d: spec.maxStep: unknown field: did you mean maxSteps? (line %d)", line, line+3)},
		"twice the same":  {writer, fmt.Sprintf(`document on line %d: metadata.name: the document on line 2 defines "writer" too (line %d)`, line+1, line+3)},
		"of another kind": {strings.Replace(second, "Agent", "Schedule", 1), fmt.Sprintf("document on line %d: kind: must be Agent (line %d)", line, line+1)},
	} {
		if _, err := agents.Parse([]byte(writer + "---\n" + tt.file)); err == nil || err.Error() != tt.want {
			t.Errorf("%s: got %v, want %s", name, err, tt.want)
		}
	}
}

func TestParse(t *testing.T) {
	got, err := parseOne([]byte(writer))
	if err != nil {
		t.Fatal(err)
	}
	zero := 0.0
	want := messages.Definition{
		Name: "writer", Description: "Writes.", Instructions: "You write.", Planner: messages.PlannerTools,
		Tools: []string{"write_file"}, MaxSteps: 8, MaxTokens: messages.DefaultMaxTokens, Temperature: &zero,
		OnToolError: messages.OnErrorModel, OnInvalidOutput: messages.OnErrorModel, OnTruncated: messages.TruncatedFail,
		Parallel: messages.DefaultParallel, RepeatLimit: new(messages.DefaultRepeatLimit),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseTheLoop(t *testing.T) {
	got, err := parseOne([]byte(strings.Replace(writer, "  temperature: 0\n", `
  planner: json
  reasoning: keep
  onInvalidOutput: fail
  onTruncated: continue
  parallel: 1
  repeatLimit: 0
  toolTimeout: 10s
  outputSchema:
    type: object
    required: [name]
    properties: {name: {type: string}}
  prompts:
    protocol: "Reply in JSON. {{tools}}"
`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	want := messages.Definition{
		Name: "writer", Description: "Writes.", Instructions: "You write.", Planner: messages.PlannerJSON,
		Tools: []string{"write_file"}, MaxSteps: 8, MaxTokens: messages.DefaultMaxTokens, OnToolError: messages.OnErrorModel,
		Reasoning: messages.ReasoningKeep, OnInvalidOutput: messages.OnErrorFail, OnTruncated: messages.TruncatedContinue,
		Parallel: 1, RepeatLimit: new(0), ToolTimeout: messages.Duration(10 * time.Second), Prompts: map[string]string{"protocol": "Reply in JSON. {{tools}}"},
		OutputSchema: []byte(`{"properties":{"name":{"type":"string"}},"required":["name"],"type":"object"}`),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseSession(t *testing.T) {
	got, err := parseOne([]byte(writer + "  session: {maxMessages: 10, maxTokens: 500, summary: on, keepTools: true}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := &messages.SessionPolicy{MaxMessages: 10, MaxTokens: 500, Summary: messages.SummaryOn, KeepTools: true}
	if diff := cmp.Diff(want, got.Session); diff != "" {
		t.Error(diff)
	}
}

func TestParseBudget(t *testing.T) {
	got, err := parseOne([]byte(writer + "  budget: {modelCalls: 5, cost: 0.5, wallTime: 10m, soft: 0.8, onBudget: ask}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := &messages.Budget{
		Caps: messages.Caps{ModelCalls: 5, Cost: new(0.5), WallTime: messages.Duration(10 * time.Minute)}, Soft: 0.8, OnBudget: messages.OnBudgetAsk,
	}
	if diff := cmp.Diff(want, got.Budget); diff != "" {
		t.Error(diff)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ old, new, field string }{
		"a name in spec":   {"maxSteps: 8", "name: other", "spec"},
		"a typo":           {"instructions", "instructoins", "spec.instructoins"},
		"another kind":     {"kind: Agent", "kind: Agents", "kind"},
		"another version":  {"run/v1", "run/v9", "apiVersion"},
		"a hostile name":   {"name: writer", "name: '>'", "metadata.name"},
		"a wrong type":     {"maxSteps: 8", "maxSteps: many", "spec.maxSteps"},
		"no steps":         {"maxSteps: 8", "maxSteps: -1", "spec.maxSteps"},
		"a tool twice":     {"[write_file]", "[a, a]", "spec.tools[1]"},
		"a hot model":      {"temperature: 0", "temperature: 3", "spec.temperature"},
		"a wild schema":    {"temperature: 0", "outputSchema: [a]", "spec.outputSchema"},
		"a strange prompt": {"temperature: 0", "prompts: {poem: x}", "spec.prompts.poem"},
		"many at once":     {"temperature: 0", "parallel: 65", "spec.parallel"},
		"an endless tool":  {"temperature: 0", "toolTimeout: 25h", "spec.toolTimeout"},
		"a timeless tool":  {"temperature: 0", "toolTimeout: soon", "spec.toolTimeout"},
		"models twice":     {"temperature: 0", "model: a\n  models: [b]", "spec.models"},
		"a strange loader": {"temperature: 0", "planner: lisp", "spec.planner"},
		"a poor budget":    {"temperature: 0", "budget: {cost: -1}", "spec.budget.cost"},
		"a strange budget": {"temperature: 0", "budget: {onBudget: beg}", "spec.budget.onBudget"},
		"a budget's typo":  {"temperature: 0", "budget: {token: 1}", "spec.budget.token"},
		"a poor session":   {"temperature: 0", "session: {maxMessages: -1}", "spec.session.maxMessages"},
		"a huge session":   {"temperature: 0", "session: {maxTokens: 1000001}", "spec.session.maxTokens"},
		"a strange one":    {"temperature: 0", "session: {summary: maybe}", "spec.session.summary"},
		"a session's typo": {"temperature: 0", "session: {keepTool: true}", "spec.session.keepTool"},
	} {
		_, err := agents.Parse([]byte(strings.Replace(writer, tc.old, tc.new, 1)))
		var fe *messages.FieldError
		if !errors.As(err, &fe) || fe.Field != tc.field {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{"not YAML": "a: [", "not a mapping": "- a", "nothing": ""} {
		if _, err := agents.Parse([]byte(text)); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("writer.yaml", writer)
	write("notes.txt", "not an agent")
	defs, err := agents.Load(dir)
	if err != nil || len(defs) != 1 {
		t.Fatalf("load: %v, %v", defs, err)
	}
	write("again.yml", writer)
	if _, err := agents.Load(dir); err == nil || !strings.Contains(err.Error(), "again.yml") {
		t.Errorf("two of a name: %v", err)
	}
	if _, err := agents.Load(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("a folder that is not there was read")
	}
}

// The examples that we ship are right.
func TestExamples(t *testing.T) {
	defs, err := agents.Load("../../deploy/examples/agents")
	if err != nil || len(defs) == 0 {
		t.Fatalf("%v, %v", defs, err)
	}
	for i := range defs {
		if err := agent.CheckOutputSchema(&messages.Task{}, &defs[i]); err != nil {
			t.Errorf("%s: %v", defs[i].Name, err)
		}
	}
	tasks, err := filepath.Glob("../../deploy/examples/tasks/*.json")
	if err != nil || len(tasks) == 0 {
		t.Fatalf("%v, %v", tasks, err)
	}
	for _, file := range tasks {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := messages.DecodeTask(data); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}
