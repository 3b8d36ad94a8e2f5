package runner_test

import (
	"context"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/agenttest"
	"github.com/longshore-run/longshore/worker/embed"
	"github.com/longshore-run/longshore/worker/runner"
)

func denies(context.Context, messages.HookCall) (messages.HookAnswer, error) {
	return messages.HookAnswer{Decision: messages.HookDeny, Reason: "no"}, nil
}

// A hook refuses a call before an approval is requested, and the refusal names the plan's step.
func TestHookRefusesAStepThatNeedsApproval(t *testing.T) {
	t.Parallel()
	service, err := embed.New(embed.Config{
		Model: agenttest.Replies(), Tools: []tools.Tool{probe(t, "do", messages.EffectOnce, answers("ok"))},
		Hooks: []runner.Hook{{On: messages.HookPreTool, Func: denies}},
		Agent: messages.Definition{
			Planner: messages.PlannerPlan, Tools: []string{"do"}, Approve: &messages.Approve{Always: []string{"do"}},
			Plan: &messages.Plan{Steps: []messages.PlanStep{{ID: "one", Description: "Do it.", Tool: "do", Critical: new(false)}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := service.Session(messages.Task{Input: messages.TextInput("Do it.")})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := s.Run(t.Context()); err != nil || res.Status != messages.StatusCompleted {
		t.Fatalf("%+v, %v", res, err)
	}
	returned := false
	for _, e := range s.Log() {
		for _, r := range e.Records {
			switch r := r.(type) {
			case *record.Parked:
				t.Errorf("an approval was requested: %+v", r)
			case *record.ToolReturned:
				if returned = true; r.StepID != "one" || r.Code != messages.CodePolicy {
					t.Errorf("%+v", r)
				}
			}
		}
	}
	if !returned {
		t.Error("the call has no result")
	}
}
