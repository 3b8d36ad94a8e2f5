package runner_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
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

// A tool gives a secret, and what a rule takes out, in two blocks of text. They are read as one text, so they are redacted as one: in
// the record, the event, what the model is told and the file that keeps a long result.
func TestNoSecretInTwoBlocks(t *testing.T) {
	const secret, card = "tok-0123456789abcdef", "4111 1111 1111 1111"
	for name, long := range map[string]int{"short": 0, "long": 100_000} {
		t.Run(name, func(t *testing.T) {
			halves, err := tools.Func(messages.ToolSpec{Name: "halves", Description: "Says two things.", Effect: messages.EffectRead},
				func(context.Context, tools.Call, struct{}) (tools.Result, error) {
					return tools.Result{Content: []messages.Block{
						{Text: secret[:8]}, {Text: secret[8:] + " " + card[:8]}, {Text: card[8:] + strings.Repeat(" and so on", long/10)},
					}}, nil
				})
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			agent := messages.Definition{Name: "a", Tools: []string{"halves"}, Policy: &messages.Policy{Content: []messages.ContentRule{{Name: "c", Category: "card"}}}}
			agent.SetDefaults()
			got := agenttest.Run(t, agenttest.Config{Config: embed.Config{
				Model: agenttest.Replies(agenttest.Call("halves", `{}`), agenttest.Text("done")), Tools: []tools.Tool{halves},
				Agent: agent, Secrets: policy.NewRedactor(secret),
			}, Files: dir}, "go")
			var told strings.Builder
			for _, e := range got.Log {
				for _, r := range e.Records {
					if r, ok := r.(*record.ToolReturned); ok {
						told.WriteString(r.Result.Shown())
					}
				}
			}
			for _, e := range got.Events {
				told.Write(e.Data)
			}
			files, err := filepath.Glob(filepath.Join(dir, "tool-results", "*"))
			if err != nil || (len(files) == 1) != (long > 0) {
				t.Fatalf("the result is kept in %v, %v", files, err)
			}
			for _, file := range files {
				kept, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				told.Write(kept)
			}
			said := told.String()
			for _, hidden := range []string{secret, card} {
				if at := strings.Index(said, hidden); at >= 0 {
					t.Errorf("%q is told: %.80q", hidden, said[at:])
				}
			}
			if !strings.Contains(said, "[redacted] [redacted]") {
				t.Errorf("told %.200q", said)
			}
		})
	}
}
