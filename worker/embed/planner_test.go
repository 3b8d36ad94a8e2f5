package embed_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/embed"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/planner"
)

func planned(t *testing.T, f planner.Func) model.Provider {
	t.Helper()
	p, err := planner.New(planner.Config{Name: "rota", Planner: f})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func planStep(id, tool string, after ...string) messages.PlanStep {
	return messages.PlanStep{ID: id, Description: "Does " + id + ".", Tool: tool, Args: json.RawMessage(`{}`), DependsOn: after}
}

// What a custom planner does wrong ends its run with a reason, and nothing else.
func TestPlannersThatFail(t *testing.T) {
	t.Parallel()
	const secret = "kex9-blue-harbour-77"
	step := func(s planner.Step) planner.Func {
		return func(context.Context, planner.State) (planner.Step, error) { return s, nil }
	}
	plan := func(steps ...messages.PlanStep) planner.Func {
		return step(planner.Step{Plan: &messages.Plan{Steps: steps}})
	}
	calls := func(name string) planner.Func {
		return step(planner.Step{Calls: []messages.ToolCall{{Name: name, Arguments: `{}`}}})
	}
	for name, tt := range map[string]struct {
		def  messages.Definition
		plan planner.Func
		code messages.Code
		says string
	}{
		"an error": {plan: func(context.Context, planner.State) (planner.Step, error) {
			return planner.Step{}, errors.New("no rota for Sundays")
		}, code: messages.CodeInternal, says: "planner rota: no rota for Sundays"},
		"an error of a model": {plan: func(context.Context, planner.State) (planner.Step, error) {
			return planner.Step{}, &model.Error{Class: model.Quota, Detail: "empty"}
		}, code: messages.CodeModelQuota, says: "empty"},
		"a panic": {plan: func(context.Context, planner.State) (planner.Step, error) { panic(secret) }, code: messages.CodeInternal, says: "it panicked"},
		"nothing": {plan: step(planner.Step{}), code: messages.CodeModelInvalidOutput, says: "it returned nothing"},
		"a plan, of an agent that has none": {
			plan: plan(planStep("a", "one")), code: messages.CodeModelInvalidOutput, says: "none was asked for",
		},
		"a plan and text": {
			def: messages.Definition{Planner: messages.PlannerPlan}, plan: step(planner.Step{Plan: &messages.Plan{}, Text: "x"}),
			code: messages.CodeModelInvalidOutput, says: "something else",
		},
		"calls for a plan": {def: messages.Definition{Planner: messages.PlannerPlan}, plan: calls("one"), code: messages.CodeModelInvalidOutput, says: "a plan was asked for"},
		"an unknown tool": {
			def: messages.Definition{OnInvalidOutput: messages.OnErrorFail}, plan: calls("two"),
			code: messages.CodeModelInvalidOutput, says: `Tool "two" not found`,
		},
		"an unknown tool, again and again": {plan: calls("two"), code: messages.CodeMaxSteps, says: "goes in circles"},
		"a cycle": {
			def: messages.Definition{Planner: messages.PlannerPlan}, plan: plan(planStep("a", "one", "b"), planStep("b", "one", "a")),
			code: messages.CodeModelInvalidOutput, says: "wait for each other: a -> b -> a",
		},
		"an unknown tool in a plan": {
			def: messages.Definition{Planner: messages.PlannerPlan}, plan: plan(planStep("a", "two")),
			code: messages.CodeModelInvalidOutput, says: `"two"`,
		},
		"arguments that are no JSON": {
			def: messages.Definition{Planner: messages.PlannerPlan}, plan: plan(messages.PlanStep{ID: "a", Tool: "one", Args: json.RawMessage(`{`)}),
			code: messages.CodeModelInvalidOutput, says: "cannot be encoded",
		},
		"the JSON protocol": {def: messages.Definition{Planner: messages.PlannerJSON}, plan: step(planner.Step{Text: "x"}), code: messages.CodeInvalidInput, says: "not json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one := tool(t, "one", func() (tools.Result, error) { return tools.Text("1"), nil })
			s := open(t, embed.Config{Model: planned(t, tt.plan), Agent: tt.def, Tools: []tools.Tool{one}}, hello())
			var told strings.Builder
			s.On(func(e messages.Event) { told.Write(record.AppendEvent(nil, &e)) })
			res, err := s.Run(t.Context())
			if err != nil || res.Error == nil || res.Error.Code != tt.code || !strings.Contains(res.Error.Message, tt.says) {
				t.Errorf("%+v, %v", res.Error, err)
			}
			if strings.Contains(told.String(), secret) {
				t.Error("an event tells what the panic was about")
			}
		})
	}
}

// A plan that is not valid may be corrected once, as a model's may.
func TestPlannerCorrectsAPlan(t *testing.T) {
	t.Parallel()
	asked := 0
	p := planned(t, func(_ context.Context, s planner.State) (planner.Step, error) {
		if s.Purpose == messages.PurposeSummary {
			return planner.Step{Text: "It is done."}, nil
		}
		asked++
		name := "two"
		if last := s.Messages[len(s.Messages)-1]; strings.Contains(last.Text(), "not a valid plan") {
			name = "one"
		}
		return planner.Step{Plan: &messages.Plan{Steps: []messages.PlanStep{planStep("a", name)}}}, nil
	})
	one := tool(t, "one", func() (tools.Result, error) { return tools.Text("1"), nil })
	s := open(t, embed.Config{
		Model: p, Tools: []tools.Tool{one}, Agent: messages.Definition{Planner: messages.PlannerPlan, Observe: messages.ObserveNever},
	}, hello())
	res, err := s.Run(t.Context())
	if err != nil || res.Status != messages.StatusCompleted || asked != 2 || res.Result != "It is done." {
		t.Errorf("%+v, %v, asked %d times", res, err, asked)
	}
}

// Run returns when its context ends while a planner is at work that obeys it.
func TestPlannerObeysItsContext(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	s := open(t, embed.Config{Model: planned(t, func(ctx context.Context, _ planner.State) (planner.Step, error) {
		close(begun)
		<-ctx.Done()
		return planner.Step{}, ctx.Err()
	})}, hello())
	why := errors.New("enough")
	ctx, stop := context.WithCancelCause(t.Context())
	go func() {
		<-begun
		stop(why)
	}()
	if _, err := s.Run(ctx); !errors.Is(err, why) {
		t.Error(err)
	}
}

// selector is a model.Selector.
type selector func([]model.Candidate) []model.Candidate

func (f selector) Select(_ context.Context, _ model.Request, from []model.Candidate) []model.Candidate {
	return f(from)
}

// A selector that names a model which was not offered, or panics, ends the run with a reason.
func TestSelectorsThatFail(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		choose selector
		code   messages.Code
		says   string
	}{
		"an unknown model": {func([]model.Candidate) []model.Candidate {
			return []model.Candidate{{Endpoint: "b", Model: "huge"}}
		}, messages.CodeNoProvider, "of those offered: a/small; it named b/huge, which was not offered"},
		"none":    {func([]model.Candidate) []model.Candidate { return nil }, messages.CodeNoProvider, "of those offered: a/small"},
		"a panic": {func(from []model.Candidate) []model.Candidate { return from[2:] }, messages.CodeInternal, "the model selector panicked"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			never := planned(t, func(context.Context, planner.State) (planner.Step, error) {
				t.Error("a model was asked")
				return planner.Step{Text: "x"}, nil
			})
			router, err := model.NewRouter(model.RouterConfig{
				Endpoints: []model.Endpoint{{Name: "a", Provider: never, Model: "small"}, {Name: "b", Provider: never}}, Selector: tt.choose,
				Retry: model.RetryConfig{Retries: -1},
			})
			if err != nil {
				t.Fatal(err)
			}
			s := open(t, embed.Config{Model: router, Agent: messages.Definition{Model: "a"}}, hello())
			res, err := s.Run(t.Context())
			if err != nil || res.Error == nil || res.Error.Code != tt.code || !strings.Contains(res.Error.Message, tt.says) {
				t.Errorf("%+v, %v", res.Error, err)
			}
		})
	}
}
