package runner_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/runner"
)

// The event plan shows the arguments of steps without secrets, which of them wait for an approval, and how long they take,
// once that is known.
func TestPlanEventShowsWhatIsKnown(t *testing.T) {
	var got []string
	mk := func(name string, destructive bool) tools.Tool {
		tool, err := tools.Func(messages.ToolSpec{Name: name, Description: "T.", Effect: messages.EffectRead, Destructive: destructive},
			func(_ context.Context, c tools.Call, in echoArgs) (tools.Result, error) {
				got = append(got, in.Text)
				return tools.Text("ok"), nil
			})
		if err != nil {
			t.Fatal(err)
		}
		return tool
	}
	set, err := tools.NewSet(mk("look", false), mk("wreck", true))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := set.Call(t.Context(), "look", tools.Call{Arguments: json.RawMessage(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	got = nil
	first, last := pstep("a", "look", "the hidden-key"), pstep("b", "wreck", strings.Repeat("x", 2000), "a")
	last.RequiredApprovals = []string{"ops"}
	third := pstep("c", "wreck", "", "a")
	def := messages.Definition{
		Name: "a", Planner: messages.PlannerPlan, Tools: []string{"look", "wreck"},
		Plan: &messages.Plan{Steps: []messages.PlanStep{first, last, third}},
	}
	def.SetDefaults()
	log := &runlog.Memory{}
	r := runner.New(runner.Config{
		Worker: "w", Tools: set, Workspace: func(messages.Ref) (*sandbox.Workspace, error) { return nil, nil },
		Model: rmodel(func(context.Context, model.Request) (*model.Reply, error) {
			return nil, errors.New("no model is asked")
		}),
		Controller: &runlog.Controller{
			Log: log, Queue: &rq{}, Events: &re{}, Now: time.Now, NewID: func() string { return messages.NewID(time.Now()) },
		},
		Agent:  func(context.Context, string) (messages.Definition, error) { return def, nil },
		Redact: func(s string) string { return strings.ReplaceAll(s, "hidden-key", "[redacted]") },
	})
	if out, err := r.Run(t.Context(), rticket(1)); out != runner.Done || err != nil {
		t.Fatal(out, err)
	}
	var plan *record.PlanData
	for e, err := range log.Read(t.Context(), rrun, 0, runlog.Tail) {
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range record.Events(rrun, e) {
			if event.Name() == messages.EventPlan && plan == nil {
				plan = &record.PlanData{}
				if err := json.Unmarshal(event.Data, plan); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if plan == nil || len(plan.Steps) != 3 {
		t.Fatalf("the event: %+v", plan)
	}
	if args := string(plan.Steps[0].Args); args != `{"text":"the [redacted]"}` || plan.Steps[1].Args != nil || !plan.Truncated {
		t.Errorf("arguments %s and %s, truncated %v", args, plan.Steps[1].Args, plan.Truncated)
	}
	if diff := cmp.Diff([]string{"b", "c"}, plan.RequiredApprovals); diff != "" || plan.Steps[1].RequiredApprovals[0] != "ops" {
		t.Errorf("approvals: %s", diff)
	}
	// How long wreck takes is not known, and so neither is the whole.
	if plan.Steps[0].EstimatedDuration <= 0 || plan.Steps[1].EstimatedDuration != 0 || plan.EstimatedDuration != 0 {
		t.Errorf("durations %v, %v, whole %v", plan.Steps[0].EstimatedDuration, plan.Steps[1].EstimatedDuration, plan.EstimatedDuration)
	}
	if diff := cmp.Diff([]string{"the [redacted]"}, got); diff != "" {
		t.Errorf("the tool was told: %s", diff)
	}
}
