package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
)

// state folds records that are not in a log.
func state(t *testing.T, def messages.Definition, task messages.Task, records ...record.Record) *agent.State {
	t.Helper()
	def.SetDefaults()
	s := &agent.State{}
	for _, r := range append([]record.Record{
		&record.Started{Task: task, Agent: def}, &record.Claimed{Claim: "c"},
	}, records...) {
		if err := s.Advance(r); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func replied(step int, stop messages.StopReason, text string, calls ...string) *record.ModelReplied {
	r := &record.ModelReplied{Step: step, Stop: stop, Message: messages.Message{Role: messages.RoleAssistant, Content: messages.TextContent(text)}}
	for _, id := range calls {
		r.Message.Content = append(r.Message.Content, messages.Block{ToolCall: &messages.ToolCall{ID: id, Name: "t"}})
	}
	return r
}

func returned(step int, id, text string) *record.ToolReturned {
	return &record.ToolReturned{Step: step, Name: "t", Result: messages.ToolResult{CallID: id, Content: messages.TextContent(text)}}
}

func TestToolCallingPlans(t *testing.T) {
	task := messages.Task{Input: messages.TextInput("hi")}
	started := &record.StepStarted{Step: 1}
	for name, tc := range map[string]struct {
		def     messages.Definition
		limit   int
		records []record.Record
		want    string // the action; for a finish its status and the begin of what it says
	}{
		"at first it asks the model":         {want: "model 1"},
		"a call that was begun is made":      {records: []record.Record{started}, want: "model 1"},
		"calls are made":                     {records: []record.Record{started, replied(1, messages.StopToolCalls, "", "a", "b")}, want: "tools"},
		"some results are not enough":        {records: []record.Record{started, replied(1, messages.StopToolCalls, "", "a", "b"), returned(1, "b", "B")}, want: "tools"},
		"with all results the model is next": {records: []record.Record{started, replied(1, messages.StopToolCalls, "", "a"), returned(1, "a", "A")}, want: "model 2"},
		"an answer ends the run":             {records: []record.Record{started, replied(1, messages.StopEnd, "ok")}, want: "completed ok"},
		"a refusal is an answer":             {records: []record.Record{started, replied(1, messages.StopRefusal, "I will not")}, want: "completed I will not"},
		"a cut answer is a failure":          {records: []record.Record{started, replied(1, messages.StopLength, "o")}, want: "failed (model_truncated)"},
		"a filtered answer is a failure":     {records: []record.Record{started, replied(1, messages.StopContentFilter, "")}, want: "failed (model_content_filter)"},
		"no answer is a failure":             {records: []record.Record{started, replied(1, messages.StopEnd, "")}, want: "failed (model_invalid_output)"},
		"a failed model call ends the run": {
			records: []record.Record{started, &record.ModelFailed{Step: 1, Error: messages.RunError{Code: messages.CodeModelAuth}}},
			want:    "failed (model_auth)",
		},
		"the agent's limit holds":  {def: messages.Definition{MaxSteps: 1}, records: []record.Record{started, replied(1, messages.StopToolCalls, "", "a"), returned(1, "a", "A")}, want: "failed (max_steps)"},
		"the task narrows it":      {limit: 1, records: []record.Record{started, replied(1, messages.StopToolCalls, "", "a"), returned(1, "a", "A")}, want: "failed (max_steps)"},
		"the task cannot widen it": {def: messages.Definition{MaxSteps: 1}, limit: 9, records: []record.Record{started, replied(1, messages.StopToolCalls, "", "a"), returned(1, "a", "A")}, want: "failed (max_steps)"},
		"a cancel goes before all": {records: []record.Record{started, replied(1, messages.StopToolCalls, "", "a"), &record.CancelRequested{Reason: "no"}}, want: "cancelled (cancelled)"},
		"a failed call may end the run": {
			def: messages.Definition{OnToolError: messages.OnErrorFail},
			records: []record.Record{started, replied(1, messages.StopToolCalls, "", "a"), &record.ToolReturned{
				Step: 1, Result: messages.ToolResult{CallID: "a", IsError: true, Content: messages.TextContent("broken")},
			}},
			want: "failed (tool_failed)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			task := task
			if tc.limit > 0 {
				task.Limits = &messages.Limits{MaxSteps: tc.limit}
			}
			s := state(t, tc.def, task, tc.records...)
			before := encode(t, s)
			if got := describe(agent.ToolCalling{}.Plan(s)); got != tc.want {
				t.Errorf("plan: %q, want %q", got, tc.want)
			}
			if diff := cmp.Diff(string(before), string(encode(t, s))); diff != "" {
				t.Errorf("planning changed the state: %s", diff)
			}
		})
	}
}

func describe(a agent.Action) string {
	switch a := a.(type) {
	case *agent.CallModel:
		return "model " + string(rune('0'+a.Step))
	case *agent.CallTools:
		return "tools"
	case *agent.Finish:
		if a.Err != nil {
			return fmt.Sprintf("%s (%s)", a.Status, a.Err.Code)
		}
		return string(a.Status) + " " + a.Result
	default:
		return "?"
	}
}

// Results come back in any order and enter the transcript in the order of the calls.
func TestTranscriptKeepsTheOrderOfCalls(t *testing.T) {
	s := state(t, messages.Definition{}, messages.Task{Input: messages.TextInput("hi")},
		&record.StepStarted{Step: 1}, replied(1, messages.StopToolCalls, "", "a", "b", "c"),
		returned(1, "c", "C"), returned(1, "a", "A"), returned(1, "b", "B"))
	var got strings.Builder
	for _, b := range s.Transcript[len(s.Transcript)-1].Content {
		got.WriteString(b.ToolResult.CallID)
	}
	if got.String() != "abc" {
		t.Errorf("results in the order %s", got.String())
	}
	if err := s.Advance(returned(1, "a", "again")); err == nil {
		t.Error("a result of a call that is not open was folded")
	}
}

func TestNothingCountsAfterTheEnd(t *testing.T) {
	s := state(t, messages.Definition{}, messages.Task{Input: messages.TextInput("hi")},
		&record.Finished{Result: messages.AgentResult{ID: "r"}})
	before := encode(t, s)
	for _, r := range []record.Record{&record.CancelRequested{}, &record.StepStarted{Step: 4}, returned(1, "x", "y")} {
		if err := s.Advance(r); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(string(before), string(encode(t, s))); diff != "" {
		t.Error(diff)
	}
}

// Advancing a clone leaves the original as it was.
func TestCloneIsApart(t *testing.T) {
	s := state(t, messages.Definition{}, messages.Task{Input: messages.TextInput("hi")},
		&record.StepStarted{Step: 1}, replied(1, messages.StopToolCalls, "", "a", "b"))
	before := encode(t, s)
	c := s.Clone()
	for _, r := range []record.Record{
		&record.ToolStarted{Step: 1, Call: messages.ToolCall{ID: "a"}}, returned(1, "a", "A"), returned(1, "b", "B"),
		&record.StepStarted{Step: 2}, replied(2, messages.StopEnd, "ok"),
	} {
		if err := c.Advance(r); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(before), string(encode(t, s))); diff != "" {
		t.Error(diff)
	}
}
