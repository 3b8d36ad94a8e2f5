package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker"
	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/memory/longterm/memstore"
)

// A rating that is given while the run works counts once it has ended: the errand comes again until then.
func TestARatingWaitsForTheEnd(t *testing.T) {
	def := messages.Definition{
		Name: "learner", Planner: messages.PlannerPlan, Tools: []string{"hold"}, Memory: &messages.MemoryPolicy{Learn: &messages.LearnPolicy{}},
		Plan: &messages.Plan{Steps: []messages.PlanStep{{ID: "wait", Description: "Wait.", Tool: "hold"}}},
	}
	def.SetDefaults()
	h := open(t, 30*time.Second, def)
	memory := memstore.New(memstore.Config{})
	h.memory = memory
	began, goOn := make(chan struct{}), make(chan struct{})
	hold, err := tools.Func(messages.ToolSpec{Name: "hold", Description: "Waits.", Effect: messages.EffectRead},
		func(ctx context.Context, _ tools.Call, _ struct{}) (tools.Result, error) {
			close(began)
			select {
			case <-goOn:
				return tools.Text("done"), nil
			case <-ctx.Done():
				return tools.Result{}, context.Cause(ctx)
			}
		})
	if err != nil {
		t.Fatal(err)
	}
	h.worker("w", script(t, "scenes: [{turns: [{text: no model is asked}]}]"), worker.Config{}, hold)
	run := h.submit(messages.Task{Agent: def.Name, Input: messages.TextInput("go")})
	select {
	case <-began:
	case <-time.After(patience):
		t.Fatal("the plan was not begun")
	}
	said, err := h.client.Runs().AddFeedback(t.Context(), run, control.FeedbackRequest{Score: new(-1.0), Comment: "No."})
	if err != nil || said.Memory == nil || said.Memory.Op != messages.MemoryDelete {
		t.Fatalf("%+v, %v", said, err)
	}
	close(goOn)
	if r := h.result(run); !r.Success || len(r.MemoryDeltas) != 1 {
		t.Fatalf("%+v", r)
	}
	kept := func() longterm.Item {
		items, err := memory.Read(t.Context(), longterm.Place{Tenant: run.Tenant, Collection: "examples"}, []string{run.Example()})
		if err != nil || len(items) != 1 {
			t.Fatalf("%+v, %v", items, err)
		}
		return items[0]
	}
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.After(patience); kept().Text != ""; {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("the rating was not followed: %+v", kept())
		}
	}
	if rating, _ := longterm.Number(kept().Fields["rating"]); rating != -1 {
		t.Errorf("kept %+v", kept())
	}
}
