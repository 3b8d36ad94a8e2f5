package toolbox_test

import (
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/deploy/toolbox"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/document"
	"github.com/longshore-run/longshore/tools"
)

// The agent and the call of docs/tools/delegate.md go together.
func TestPageOfDelegate(t *testing.T) {
	agents, asked := examples(t, "delegate.md", "yaml"), examples(t, "delegate.md", "json")
	if len(agents) != 1 || len(asked) != 1 {
		t.Fatalf("the page has %d agents and %d calls", len(agents), len(asked))
	}
	doc, err := document.Only([]byte(agents[0]), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var agent struct {
		Spec messages.Definition `json:"spec"`
	}
	if err := json.Unmarshal(doc.JSON, &agent); err != nil {
		t.Fatal(err)
	}
	def := agent.Spec
	def.Name = "editor"
	def.SetDefaults()
	if err := def.Validate(); err != nil {
		t.Fatal(err)
	}
	box, err := toolbox.Open(t.Context(), &settings.Tools{}, toolbox.Needs{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	set, err := box.Set()
	if err != nil {
		t.Fatal(err)
	}
	specs, err := set.Specs(def.Tools)
	if err != nil {
		t.Fatal(err)
	}
	args, bad := set.Check(messages.ToolCall{ID: "c", Name: messages.ToolDelegate, Arguments: asked[0]}, specs)
	if bad != nil {
		t.Fatalf("the call is refused: %+v", bad)
	}
	r, err := set.Call(t.Context(), messages.ToolDelegate, tools.Call{Arguments: args, Delegate: def.Delegate})
	if err != nil || r.Delegation == nil || len(r.Delegation.Tasks) != 2 {
		t.Errorf("%+v %v", r, err)
	}
}
