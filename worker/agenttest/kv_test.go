package agenttest_test

import (
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools/kv"
	"github.com/longshore-run/longshore/worker/agenttest"
	"github.com/longshore-run/longshore/worker/embed"
)

// An agent with the tools of package kv is tested without Redis: the store lives as long as the test, and runs share in it what the
// agent's grants say.
func TestAgentThatKeepsKeys(t *testing.T) {
	store := kv.NewMemory(kv.Limits{Keys: 10, Bytes: 1000, TTL: time.Hour}, agenttest.Clock())
	keeping, err := kv.Tools(store, kv.Config{TTL: messages.Duration(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	agent := messages.Definition{
		Name: "keeper", Tools: []string{"kv_get", "kv_set"}, MaxSteps: 10, Grants: &messages.Grants{KV: messages.KVTenant},
	}
	agenttest.Run(t, agenttest.Config{Config: embed.Config{Agent: agent, Tools: keeping, Model: agenttest.Replies(
		agenttest.Call("kv_set", `{"key":"seen","value":"42"}`), agenttest.Text("Done."),
	)}}, "Look.").Want(t, "model", "tool kv_set", "model", "completed")
	again := agenttest.Replies(agenttest.Call("kv_get", `{"key":"seen"}`), agenttest.Text("Done."))
	agenttest.Run(t, agenttest.Config{Config: embed.Config{Agent: agent, Tools: keeping, Model: again}}, "Look again.").Want(t, "model", "tool kv_get", "model", "completed")
	answers := again.Requests()[1].Messages
	if m := answers[len(answers)-1]; len(m.Content) == 0 || m.Content[0].ToolResult == nil || m.Content[0].ToolResult.Content[0].Text != "(Revision 1)\n42" {
		t.Errorf("the model was told %+v", m)
	}
	agent.Grants = nil // its own keys alone
	alone := agenttest.Replies(agenttest.Call("kv_get", `{"key":"seen"}`), agenttest.Text("Done."))
	agenttest.Run(t, agenttest.Config{Config: embed.Config{Agent: agent, Tools: keeping, Model: alone}}, "Look.")
	answers = alone.Requests()[1].Messages
	if got := answers[len(answers)-1].Content[0].ToolResult.Content[0].Text; got != `(Nothing is kept under "seen".)` {
		t.Errorf("the model was told %s", got)
	}
}
