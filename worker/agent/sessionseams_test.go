package agent_test

import (
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
)

// Calls and results of earlier runs are text for planners that offer the model no tools: providers refuse them there.
func TestRecalledCallsWithoutTools(t *testing.T) {
	t.Parallel()
	call := messages.ToolCall{ID: "c1", Name: "look", Arguments: `{"at":"cat"}`}
	for planner, native := range map[string]bool{messages.PlannerTools: true, messages.PlannerJSON: false, messages.PlannerPlan: false} {
		d := messages.Definition{Name: "a", Planner: planner, Tools: []string{"look"}}
		d.SetDefaults()
		s := &agent.State{}
		for _, r := range []record.Record{
			&record.Started{
				Task:  messages.Task{ID: "r", Tenant: "t", Session: "s", Input: messages.TextInput("And now?")},
				Agent: d, Tools: []messages.ToolSpec{{Name: "look"}},
			},
			&record.Claimed{Claim: "k"},
			&record.Recalled{From: "r0", Messages: []messages.Message{
				{Role: messages.RoleUser, Content: messages.TextContent("What is there?")},
				{Role: messages.RoleAssistant, Content: []messages.Block{{ToolCall: &call}}},
				{Role: messages.RoleTool, Content: []messages.Block{{ToolResult: &messages.ToolResult{CallID: "c1", Content: messages.TextContent("a cat")}}}},
				{Role: messages.RoleAssistant, Content: messages.TextContent("A cat.")},
			}},
		} {
			if err := s.Advance(r); err != nil {
				t.Fatal(err)
			}
		}
		a, ok := s.Next(agent.Planners()[planner], true).(*agent.CallModel)
		if !ok || a.Recalled != 4 {
			t.Fatalf("%s: %+v", planner, a)
		}
		var said strings.Builder
		calls := 0
		for _, m := range a.Messages {
			calls += len(m.Calls())
			said.WriteString(m.Text())
			if m.Role == messages.RoleTool {
				calls++
			}
			if len(m.Content) == 0 {
				t.Errorf("%s: an empty message", planner)
			}
		}
		text := said.String()
		if native != (calls == 2) || !native && (calls != 0 || !strings.Contains(text, `{"at":"cat"}`) || !strings.Contains(text, "Result of look:\na cat")) {
			t.Errorf("%s: %d calls, %s", planner, calls, text)
		}
	}
}

// A fork does not wait as the run did of which it keeps something, and asks for no turn.
func TestForkedStateGoesOn(t *testing.T) {
	t.Parallel()
	d := messages.Definition{Name: "a", Planner: messages.PlannerPlan}
	d.SetDefaults()
	first := &record.Started{
		Task: messages.Task{ID: "r", Tenant: "t", Input: messages.TextInput("Go.")}, Agent: d, ForkedFrom: &messages.Origin{Run: "r0", Step: 2},
	}
	for _, r := range []record.Record{
		&record.Recalled{From: "r-1", Messages: []messages.Message{{Role: messages.RoleUser, Content: messages.TextContent("Hello.")}}},
		&record.StepStarted{Step: 1, Purpose: messages.PurposePlan},
		&record.ModelFailed{Step: 1, Error: messages.RunError{Code: messages.CodeModelTimeout}, Fallback: record.FallbackPark},
		&record.ModelReplied{Step: 1, Message: messages.Message{Role: messages.RoleAssistant, Content: messages.TextContent("no plan")}},
	} {
		if kept, ok := record.Forked(r); ok {
			first.Prefix = append(first.Prefix, kept)
		}
	}
	s := &agent.State{}
	for _, r := range []record.Record{first, &record.Claimed{Claim: "k"}, &record.StepStarted{Step: 2, Purpose: messages.PurposePlan}} {
		if err := s.Advance(r); err != nil {
			t.Fatal(err)
		}
	}
	if a, ok := s.Next(agent.PlanFirst{}, true).(*agent.CallModel); !ok || a.Recalled != 1 {
		t.Errorf("%T %+v", a, a)
	}
}
