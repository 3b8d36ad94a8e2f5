package agent_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
)

var resultRun = messages.Ref{Tenant: "acme", Run: "r1"}

func conclude(s *agent.State, f *agent.Finish) messages.AgentResult {
	s.StartedAt = time.Unix(1, 0).UTC()
	return s.Conclude(resultRun, f, time.Unix(2, 0).UTC())
}

// Of what the log knows a result tells: who replied, by which prompt, what went wrong on the way, and what tools said.
func TestResultTellsWhatTheLogKnows(t *testing.T) {
	def := messages.Definition{
		Name: "a", Revision: 7, OutputSchema: json.RawMessage(`{"type":"object"}`), Prompt: &messages.PromptRef{ID: "greet", Version: 3},
	}
	task := hi
	task.Traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	task.Seed = new(int64(4))
	said := returned(1, "x", "X")
	said.Meta, said.Files = json.RawMessage(`{"bytes":1}`), []string{"a.txt"}
	one := replied(1, messages.StopToolCalls, "", "x")
	one.Provider, one.Model = "openai", "m"
	answer := replied(2, messages.StopEnd, `{ "n": 1 }`)
	answer.Provider, answer.Model = "other", "m2"
	s := state(t, def, task, &record.Claimed{Claim: "c1", Worker: "w1"}, step(1),
		&record.Parked{Reason: queue.ParkModel, Cause: &messages.Cause{Code: messages.CodeModelUnreachable, Message: "refused", Provider: "openai/m"}},
		&record.Claimed{Claim: "c2", Worker: "w2", Resumes: queue.ParkModel},
		&record.Claimed{Claim: "c3", Worker: "w3"},
		&record.BudgetWarned{Limit: messages.CapTokens, Spent: 8, Allowed: 10},
		&record.HookFailed{On: messages.HookPreTool, Hook: "h", Reason: "down"},
		one, said, step(2), answer)
	r := conclude(s, &agent.Finish{Status: messages.StatusCompleted, Result: s.Answer})
	if string(r.Output) != `{"n":1}` || r.Result != `{ "n": 1 }` {
		t.Errorf("output %s, result %v", r.Output, r.Result)
	}
	want := &messages.Diagnostics{
		Warnings: []string{
			"step 1: it waited for its model openai/m: refused (model_unreachable)",
			"worker w2 was lost in step 1; another attempt began",
			"budget: 8 of 10 used of tokens",
			"hook h at pre_tool failed: down",
			"the price of a model is unknown, and so is the cost; see LONGSHORE_PRICES",
		},
		Traces: []string{messages.RunTrace(resultRun, task.Traceparent).String()},
	}
	if diff := cmp.Diff(want, r.Diagnostics); diff != "" {
		t.Error(diff)
	}
	if r.RetryInfo == nil || r.RetryInfo.LastError != "worker w2 was lost" || r.RetryInfo.Attempts != 3 {
		t.Errorf("%+v", r.RetryInfo)
	}
	if diff := cmp.Diff(&messages.Provenance{
		Agent: "a", Revision: 7, Prompts: []messages.PromptUsed{{ID: "greet", Version: 3}}, Models: []string{"openai/m", "other/m2"},
	}, r.Provenance); diff != "" {
		t.Error(diff)
	}
	if string(r.Actions[0].Meta) != `{"bytes":1}` || r.Attachments["a.txt"] != "acme/r1/a.txt" || r.Deterministic {
		t.Errorf("%s, %v, %v", r.Actions[0].Meta, r.Attachments, r.Deterministic)
	}
	if r.Summary != "Completed after 2 steps and 1 tool call. Files written: a.txt." {
		t.Errorf("summary: %q", r.Summary)
	}
}

func TestResultOfAFailure(t *testing.T) {
	broken := &record.ToolReturned{
		Step: 1, Name: "t", Code: messages.CodeToolFailed,
		Result: messages.ToolResult{CallID: "x", IsError: true, Content: messages.TextContent("broken")},
	}
	for name, tc := range map[string]struct {
		def     messages.Definition
		records []record.Record
		info    map[string]any
		summary string
	}{
		"a tool": {
			messages.Definition{OnToolError: messages.OnErrorFail},
			[]record.Record{step(1), replied(1, messages.StopToolCalls, "", "x"), broken},
			map[string]any{"step": 1, "tool": "t", "callId": "x", "retryable": true},
			"Failed after 1 step and 1 tool call (1 failed): broken (tool_failed).",
		},
		"a model": {
			messages.Definition{},
			[]record.Record{step(1), &record.ModelFailed{
				Step: 1, Provider: "openai/m", Error: messages.RunError{Code: messages.CodeModelAuth, Message: "no such key"},
			}},
			map[string]any{"step": 1, "provider": "openai/m", "retryable": false},
			"Failed after 1 step: no such key (model_auth).",
		},
		"a cancel": {
			messages.Definition{},
			[]record.Record{&record.CancelRequested{By: "ann", Reason: "too slow"}},
			map[string]any{"retryable": false},
			"Cancelled before the first step: cancelled by ann: too slow.",
		},
		"steps": {
			messages.Definition{MaxSteps: 1},
			[]record.Record{step(1), replied(1, messages.StopToolCalls, "", "x"), returned(1, "x", "X")},
			map[string]any{"step": 1, "maxSteps": 1, "retryable": false},
			"Failed after 1 step and 1 tool call: no final answer within the limit of steps, 1 (max_steps).",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := state(t, tc.def, hi, tc.records...)
			f, ok := agent.ToolCalling{}.Plan(s).(*agent.Finish)
			if !ok {
				t.Fatal("it continues")
			}
			r := conclude(s, f)
			if diff := cmp.Diff(any(tc.info), r.Error.Info); diff != "" {
				t.Error(diff)
			}
			if r.Summary != tc.summary {
				t.Errorf("summary: %q", r.Summary)
			}
		})
	}
}

// A run with a seed whose replies were played or came from the cache would go the same way again.
func TestDeterministic(t *testing.T) {
	for name, tc := range map[string]struct {
		seed     *int64
		provider string
		cached   bool
		want     bool
	}{
		"played":            {new(int64(1)), "scripted", false, true},
		"cached":            {new(int64(1)), "openai", true, true},
		"drawn by a model":  {new(int64(1)), "openai", false, false},
		"no seed":           {nil, "scripted", false, false},
		"no reply, no seed": {nil, "", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			task := hi
			task.Seed = tc.seed
			reply := replied(1, messages.StopEnd, "ok")
			reply.Provider, reply.Cached = tc.provider, tc.cached
			s := state(t, messages.Definition{}, task, step(1), reply)
			if r := conclude(s, &agent.Finish{Status: messages.StatusCompleted}); r.Deterministic != tc.want {
				t.Errorf("deterministic: %v", r.Deterministic)
			}
		})
	}
}

// Decisions about a plan are actions among the calls.
func TestResultHasThePlannersSteps(t *testing.T) {
	plan := &messages.Plan{Steps: []messages.PlanStep{
		{ID: "a", Description: "A.", Tool: "t"}, {ID: "b", Description: "B.", Tool: "t", DependsOn: []string{"a"}},
	}}
	s := state(t, messages.Definition{Planner: messages.PlannerPlan, Tools: []string{"t"}}, hi,
		&record.Planned{Decision: record.DecisionReady, Reason: "given", Plan: plan},
		&record.StepStarted{Step: 1, StepID: "a"}, returned(1, "a", "A"), &record.StepEnded{Step: 1, StepID: "a", Status: messages.StepCompleted},
		&record.Planned{Step: 2, Decision: record.DecisionComplete, Reason: "enough"},
		&record.StepEnded{Step: 2, StepID: "b", Status: messages.StepSkipped, Reason: "not needed"})
	r := conclude(s, &agent.Finish{Status: messages.StatusCompleted, Summary: "All is well."})
	var got []string
	for _, a := range r.Actions {
		got = append(got, strings.Join([]string{a.Type, a.CallID, a.Name, a.Output}, "|"))
	}
	want := []string{"planner||ready|given", "tool|a|t|A", "planner||complete|enough", "planner|b|skip|not needed"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(r.Actions[0].Input, `"dependsOn":["a"]`) || r.Summary != "All is well." || r.Provenance.Planner != "plan" || len(r.Calls()) != 1 {
		t.Errorf("%+v", r)
	}
}

// However much went wrong, and however much tools said, a result stays small and says what it left out.
func TestResultBoundsWhatItAdds(t *testing.T) {
	var records []record.Record
	for n := 1; n <= 100; n++ {
		r := returned(n, "x", "X")
		r.Meta = json.RawMessage(`{"k":"` + strings.Repeat("v", 3000) + `"}`)
		r.Files = []string{strings.Repeat("f", 900) + string(rune('a'+n%26)) + string(rune('a'+n/26))}
		records = append(records, step(n), &record.HookFailed{Hook: "h", Reason: strings.Repeat("r", 5000)},
			replied(n, messages.StopToolCalls, "", "x"), r)
	}
	s := state(t, messages.Definition{OutputSchema: json.RawMessage(`{"type":"object"}`)}, hi, records...)
	r := conclude(s, &agent.Finish{Status: messages.StatusCompleted, Result: `{"a":"` + strings.Repeat("x", 300_000) + `"}`})
	for _, want := range []string{"output, which is larger", "attachments", "the meta of the last 79 tool calls"} {
		if !strings.Contains(r.Cut, want) {
			t.Errorf("cut says nothing of %q: %q", want, r.Cut)
		}
	}
	if n := len(r.Diagnostics.Warnings); n != 34 || r.Diagnostics.Warnings[32] != "68 more warnings" || r.Output != nil {
		t.Errorf("%d warnings, the last %q", n, r.Diagnostics.Warnings[n-1])
	}
	r.Result, r.Outputs = nil, nil
	if b, err := json.Marshal(r); err != nil || len(b) > 200_000 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}
