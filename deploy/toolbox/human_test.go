package toolbox_test

import (
	"log/slog"
	"testing"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/deploy/toolbox"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
)

// The agent of docs/tools/human.md may make the call of the page without a grant, and the run waits for an answer.
func TestPageOfHuman(t *testing.T) {
	agents, asked := examples(t, "human.md", "yaml"), examples(t, "human.md", "json")
	if len(agents) != 1 || len(asked) != 1 {
		t.Fatalf("the page has %d agents and %d calls", len(agents), len(asked))
	}
	agent := definition(t, agents[0])
	box, err := toolbox.Open(t.Context(), &settings.Tools{}, toolbox.Needs{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	set, err := box.Set()
	if err != nil {
		t.Fatal(err)
	}
	specs, err := set.Specs(agent.Tools)
	if err != nil {
		t.Fatal(err)
	}
	args, bad := set.Check(messages.ToolCall{ID: "c", Name: "ask_human", Arguments: asked[0]}, specs)
	if bad != nil {
		t.Fatalf("the call is refused: %+v", bad)
	}
	r, err := set.Call(t.Context(), "ask_human", tools.Call{Arguments: args})
	if err != nil || r.Park == nil || r.Park.Question == "" || r.Park.For.Hours() != 24 {
		t.Errorf("%+v %v", r.Park, err)
	}
}
