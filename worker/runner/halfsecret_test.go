package runner_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/agenttest"
	"github.com/longshore-run/longshore/worker/embed"
	"github.com/longshore-run/longshore/worker/policy"
)

// A result that is too long is cut, and the model can read the rest of it in a file. No half of a secret is left where it was cut.
func TestNoHalfSecretWhereAResultIsCut(t *testing.T) {
	const most = 1 << 20
	secret, dir := "tok-"+strings.Repeat("0123456789", 30), t.TempDir()
	flood, err := tools.Func(messages.ToolSpec{Name: "flood", Description: "Says much.", Effect: messages.EffectRead},
		func(context.Context, tools.Call, struct{}) (tools.Result, error) {
			return tools.Text(strings.Repeat("x", most-280) + secret + strings.Repeat("y", 1000)), nil
		})
	if err != nil {
		t.Fatal(err)
	}
	service, err := embed.New(embed.Config{
		Model: agenttest.Replies(agenttest.Call("flood", `{}`), agenttest.Text("done")), Tools: []tools.Tool{flood},
		Agent: messages.Definition{Name: "a", Tools: []string{"flood"}}, Secrets: policy.NewRedactor(secret),
		Workspace: func(messages.Ref) (*sandbox.Workspace, error) { return sandbox.Open(dir, sandbox.Limits{}) },
	})
	if err != nil {
		t.Fatal(err)
	}
	session, err := service.Session(messages.Task{Input: messages.TextInput("go")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "tool-results", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the result is kept in %v, %v", files, err)
	}
	kept, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if end := string(kept[len(kept)-400:]); strings.Contains(end, secret[:12]) || !strings.Contains(end, policy.Mark) {
		t.Errorf("the file ends with %q", end)
	}
}
