package embed_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/files"
	"github.com/longshore-run/longshore/worker/agenttest"
	"github.com/longshore-run/longshore/worker/embed"
	"github.com/longshore-run/longshore/worker/model/scripted"
	"github.com/longshore-run/longshore/worker/policy"
)

// One reply that reads a large file 256 times takes little memory of its worker, and ends the run.
func TestReplyOfManyLargeReads(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "big.txt"), []byte(strings.Repeat("0123456789abcdef", 1<<16)), 0o600); err != nil {
		t.Fatal(err)
	}
	echo, err := tools.Func(messages.ToolSpec{Name: "flood", Description: "Says much.", Effect: messages.EffectRead},
		func(context.Context, tools.Call, struct{}) (tools.Result, error) {
			return tools.Text(strings.Repeat("flood ", 1<<20/6)), nil
		})
	if err != nil {
		t.Fatal(err)
	}
	fileTools, err := files.Tools()
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]string{
		"read_file": "{name: read_file, arguments: {filePath: big.txt}}", "flood": "{name: flood, arguments: {}}",
	} {
		t.Run(name, func(t *testing.T) {
			calls := strings.Repeat(call+", ", 256)
			play, err := scripted.Parse(fmt.Appendf(nil, "scenes: [{turns: [{calls: [%s]}, {text: done}]}]", strings.TrimSuffix(calls, ", ")))
			if err != nil {
				t.Fatal(err)
			}
			service, err := embed.New(embed.Config{
				Model: scripted.New(play), Tools: append(fileTools, echo),
				Agent:     messages.Definition{Name: "reader", Tools: []string{"read_file", "flood"}},
				Workspace: func(messages.Ref) (*sandbox.Workspace, error) { return sandbox.Open(dir, sandbox.Limits{}) },
			})
			if err != nil {
				t.Fatal(err)
			}
			session, err := service.Session(messages.Task{Input: messages.TextInput("read")})
			if err != nil {
				t.Fatal(err)
			}
			var before, now runtime.MemStats
			runtime.ReadMemStats(&before)
			most := uint64(0)
			session.On(func(e messages.Event) {
				if e.Name() == "tool_execution_end" {
					runtime.ReadMemStats(&now)
					most = max(most, now.HeapAlloc)
				}
			})
			result, err := session.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if result.Error == nil || result.Error.Code != messages.CodeModelContextLength {
				t.Errorf("%+v", result.Error)
			}
			if most > before.HeapAlloc+256<<20 {
				t.Errorf("the heap grew by %d MiB", (most-before.HeapAlloc)>>20)
			}
			t.Logf("the heap grew by %d MiB", (most-before.HeapAlloc)>>20)
		})
	}
}

// A model that puts a secret into the name or the id of a call does not get it into an event or the result.
func TestSecretsInCallsAreRedacted(t *testing.T) {
	const secret = "kex9-blue-harbour-77"
	for name, call := range map[string]messages.ToolCall{
		"name": {ID: "c1", Name: "x-" + secret, Arguments: "{}"}, "id": {ID: "x-" + secret, Name: "pass", Arguments: "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			session := open(t, embed.Config{
				Model: agenttest.Replies(agenttest.Reply{Calls: []messages.ToolCall{call}}, agenttest.Text("done")), Secrets: policy.NewRedactor(secret),
				Tools: []tools.Tool{tool(t, "pass", func() (tools.Result, error) { return tools.Text("passed"), nil })},
			}, hello())
			var told strings.Builder
			session.On(func(e messages.Event) { told.Write(record.AppendEvent(nil, &e)) })
			result, err := session.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			out, err := json.Marshal(result)
			if err != nil {
				t.Fatal(err)
			}
			told.Write(out)
			if strings.Contains(told.String(), secret) || !strings.Contains(told.String(), "x-"+policy.Mark) {
				t.Error(told.String())
			}
		})
	}
}
