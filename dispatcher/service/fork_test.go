package service_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/service"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// At its first step a run with a given plan may be forked to any agent: nothing of the plan is kept, and the prompt
// that the agent names is filled in.
func TestForkToAnotherAgent(t *testing.T) {
	nc := start(t)
	defer serve(t, nc, service.Config{})()
	ctx := t.Context()
	c, err := dispatcher.New(ctx, nc)
	if err != nil {
		t.Fatal(err)
	}
	b, err := bus.Open(ctx, nc, bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Prompts().Put(ctx, messages.Prompt{ID: "tone", Text: "Be {tone}."}, nil); err != nil {
		t.Fatal(err)
	}
	for _, d := range []messages.Definition{
		{Name: "polite", Prompt: &messages.PromptRef{ID: "tone", Vars: []byte(`{"tone":"polite"}`)}},
		{Name: "vague", Prompt: &messages.PromptRef{ID: "tone"}},
	} {
		d.SetDefaults()
		if _, err := c.Agents().Apply(ctx, d, "", nil); err != nil {
			t.Fatal(err)
		}
	}
	planner := messages.Definition{Name: "planner", Tools: []string{"look"}, Plan: &messages.Plan{
		Steps: []messages.PlanStep{{ID: "one", Description: "Look.", Tool: "look"}},
	}}
	planner.SetDefaults()
	run := messages.Ref{Tenant: messages.DefaultTenant, Run: "planned"}
	task := messages.Task{ID: run.Run, Agent: "planner", Input: messages.TextInput("Go.")}
	task.SetDefaults()
	logs := runlogs.New(b, runlogs.Config{})
	k := &runlog.Controller{Log: logs, Queue: taskqueue.New(b), Events: logs, Now: time.Now, NewID: func() string { return messages.NewID(time.Now()) }}
	_, err = k.Begin(ctx, run,
		&record.Started{Task: task, Agent: planner, Tools: []messages.ToolSpec{{Name: "look", InputSchema: []byte(`{}`)}}, QueuedAt: time.Now()},
		&record.Claimed{Claim: "k", Worker: "w", Ticket: 1},
		&record.Planned{Decision: record.DecisionReady, Plan: planner.Plan},
		&record.StepStarted{Step: 1, StepID: "one"},
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Runs().Fork(ctx, run, control.ForkRequest{At: 1, Agent: "vague"}); !refuses(err, "agent", "tone") {
		t.Errorf("a prompt that lacks a value: %v", err)
	}
	reply, err := c.Runs().Fork(ctx, run, control.ForkRequest{At: 1, Agent: "polite", NewID: "fork"})
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range runlogs.New(b, runlogs.Config{}).Read(ctx, messages.Ref{Tenant: run.Tenant, Run: reply.ID}, 0, runlog.Tail) {
		if err != nil {
			t.Fatal(err)
		}
		first, ok := e.Records[0].(*record.Started)
		if !ok || first.Agent.Instructions != "Be polite." || first.Agent.Prompt.Version == 0 || len(first.Prefix) != 0 {
			t.Errorf("%+v", e.Records[0])
		}
		break
	}
}

func refuses(err error, field, text string) bool {
	wrong, ok := errors.AsType[*messages.FieldError](err)
	return ok && wrong.Field == field && strings.Contains(wrong.Reason, text)
}
