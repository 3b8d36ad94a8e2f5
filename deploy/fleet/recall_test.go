package fleet_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages"
)

const recallScript = `scenes:
  - {match: "Remember", repeat: true, turns: [{calls: [{name: remember, arguments: {text: "The ferry to Malmo leaves from pier 4."}}]}, {text: "Kept."}]}
  - {repeat: true, turns: [{text: "From pier 4."}]}
`

// What a run has kept with a tool, a later run of the same agent begins with, and its result says where it came from.
func TestRunsBeginWithWhatOthersKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script, tools := filepath.Join(dir, "script.yaml"), filepath.Join(dir, "tools.yaml")
	for name, text := range map[string]string{script: recallScript, tools: "apiVersion: longshore.run/v1\nkind: Tools\nspec:\n  memory: {}\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var read settings.Dev
	if err := settings.Load(&read, []string{"LONGSHORE_TOOLS=" + tools}); err != nil {
		t.Fatal(err)
	}
	dev, err := fleet.StartDev(t.Context(), fleet.DevConfig{
		Dir: filepath.Join(dir, "data"), Abrupt: true, Log: testLog(t, "dev"),
		Dev: settings.Dev{Runs: settings.Runs{Slots: 2, MaxAttempts: 5, ModelTimeout: time.Minute}, Models: settings.Models{Script: script}, Tools: read.Tools},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Stop(); err != nil {
			t.Error(err)
		}
	})
	client, err := dev.Client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	work := func(agent, input string) *messages.AgentResult {
		t.Helper()
		id, err := client.Submit(t.Context(), messages.Task{Agent: agent, Input: messages.TextInput(input)})
		if err != nil {
			t.Fatal(err)
		}
		r, err := client.Wait(t.Context(), messages.Ref{Tenant: messages.DefaultTenant, Run: id})
		if err != nil || !r.Success {
			t.Fatalf("%+v, %v", r, err)
		}
		return r
	}
	for _, name := range []string{"harbour", "other"} {
		def := messages.Definition{Name: name, Tools: []string{"remember"}, Memory: &messages.MemoryPolicy{Recall: &messages.RecallPolicy{}}}
		if _, err := client.Agents().Apply(t.Context(), def, "", nil); err != nil {
			t.Fatal(err)
		}
	}
	first := work("harbour", "Remember where the ferry leaves.")
	if len(first.MemoryDeltas) != 1 {
		t.Fatalf("nothing was kept: %+v", first)
	}
	const question = "Where does the ferry to Malmo leave?"
	used := work("harbour", question).Provenance.Memories
	if len(used) != 1 || used[0].Score <= 0 || used[0].Created.IsZero() {
		t.Fatalf("the run was given %+v", used)
	}
	want := messages.MemoryUsed{ID: first.MemoryDeltas[0].ID, Collection: "facts", Run: first.ID, Score: used[0].Score, Created: used[0].Created}
	if diff := cmp.Diff(want, used[0]); diff != "" {
		t.Error(diff)
	}
	if others := work("other", question); len(others.Provenance.Memories) != 0 || others.Diagnostics != nil {
		t.Errorf("another agent's run: %+v, %+v", others.Provenance, others.Diagnostics)
	}
}
