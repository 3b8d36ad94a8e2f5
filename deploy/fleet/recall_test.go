package fleet_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

const recallScript = `scenes:
  - {match: "Remember", repeat: true, turns: [{calls: [{name: remember, arguments: {text: "The ferry to Malmo leaves from pier 4."}}]}, {text: "Kept."}]}
  - {repeat: true, turns: [{text: "From pier 4."}]}
`

// devFleet is a fleet in one process with a script and the memory tools.
func devFleet(t *testing.T, text string) *dispatcher.Client {
	t.Helper()
	return devFleetWith(t, text, "")
}

// devFleetWith is devFleet with long-term memory in another place.
func devFleetWith(t *testing.T, text, memory string) *dispatcher.Client {
	t.Helper()
	_, client := devFleetOf(t, text, memory, "", "")
	return client
}

// devFleetOf is devFleet with long-term memory in another place, what the memory tools are granted, and the spec of a policy file.
func devFleetOf(t *testing.T, text, memory, granted, rules string) (*fleet.Dev, *dispatcher.Client) {
	t.Helper()
	const version = "apiVersion: longshore.run/v1\n"
	dir := t.TempDir()
	script, tools, policy := filepath.Join(dir, "script.yaml"), filepath.Join(dir, "tools.yaml"), filepath.Join(dir, "policy.yaml")
	for name, text := range map[string]string{
		script: text, tools: version + "kind: Tools\nspec: {memory: {" + granted + "}}\n", policy: version + "kind: Policy\nspec: {" + rules + "}\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var read settings.Dev
	if err := settings.Load(&read, []string{"LONGSHORE_TOOLS=" + tools, "LONGSHORE_POLICY=" + policy}); err != nil {
		t.Fatal(err)
	}
	dev, err := fleet.StartDev(t.Context(), fleet.DevConfig{
		Dir: filepath.Join(dir, "data"), Abrupt: true, Log: testLog(t, "dev"),
		Dev: settings.Dev{Runs: settings.Runs{Slots: 2, MaxAttempts: 5, ModelTimeout: time.Minute}, Models: settings.Models{Script: script}, Tools: read.Tools, Policy: read.Policy, LongTerm: settings.LongTerm{Memory: memory}},
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
	return dev, client
}

// worked is the result of a task that completed.
func worked(t *testing.T, client *dispatcher.Client, agent, input string) *messages.AgentResult {
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

// What a run has kept with a tool, a later run of the same agent begins with, and its result says where it came from.
func TestRunsBeginWithWhatOthersKept(t *testing.T) {
	t.Parallel()
	client := devFleet(t, recallScript)
	for _, name := range []string{"harbour", "other"} {
		def := messages.Definition{Name: name, Tools: []string{"remember"}, Memory: &messages.MemoryPolicy{Recall: &messages.RecallPolicy{}}}
		if _, err := client.Agents().Apply(t.Context(), def, "", nil); err != nil {
			t.Fatal(err)
		}
	}
	first := worked(t, client, "harbour", "Remember where the ferry leaves.")
	if len(first.MemoryDeltas) != 1 {
		t.Fatalf("nothing was kept: %+v", first)
	}
	const question = "Where does the ferry to Malmo leave?"
	used := worked(t, client, "harbour", question).Provenance.Memories
	if len(used) != 1 || used[0].Score <= 0 || used[0].Created.IsZero() {
		t.Fatalf("the run was given %+v", used)
	}
	want := messages.MemoryUsed{ID: first.MemoryDeltas[0].ID, Collection: "facts", Run: first.ID, Score: used[0].Score, Created: used[0].Created}
	if diff := cmp.Diff(want, used[0]); diff != "" {
		t.Error(diff)
	}
	if others := worked(t, client, "other", question); len(others.Provenance.Memories) != 0 || others.Diagnostics != nil {
		t.Errorf("another agent's run: %+v, %+v", others.Provenance, others.Diagnostics)
	}
}

// While long-term memory is away, or does not answer, a call of its tools fails and says so to the model, and the run begins and completes without
// it; what clients ask is refused with a status that says to ask again.
func TestRunsWithoutTheirMemory(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	for name, addr := range map[string]string{"away": fmt.Sprintf("127.0.0.1:%d", freePort(t)), "silent": silent.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := devFleetWith(t, recallScript, "postgres://user@"+addr+"/memory?sslmode=disable")
			def := messages.Definition{Name: "harbour", Tools: []string{"remember"}, Memory: &messages.MemoryPolicy{Recall: &messages.RecallPolicy{}}}
			if _, err := client.Agents().Apply(t.Context(), def, "", nil); err != nil {
				t.Fatal(err)
			}
			r := worked(t, client, "harbour", "Remember where the ferry leaves.")
			if len(r.MemoryDeltas) > 0 || r.Result != "Kept." || r.Diagnostics == nil {
				t.Errorf("%+v", r)
			}
			run := messages.Ref{Tenant: messages.DefaultTenant, Run: r.ID}
			told := map[string]string{}
			for e, err := range client.Watch(t.Context(), run) {
				if err != nil {
					t.Fatal(err)
				}
				told[e.Name()] = string(e.Data)
			}
			if said := told[messages.EventToolExecutionEnd]; !strings.Contains(said, `"isError":true`) || !strings.Contains(said, "The memory does not answer now.") || !strings.Contains(said, string(messages.CodeToolFailed)) {
				t.Errorf("the call: %s", said)
			}
			if said := told[messages.EventMemoryRecalled]; !strings.Contains(said, `"memories":[],"error":"`) {
				t.Errorf("the search: %s", said)
			}
			if _, err := client.Memory().Collections(t.Context(), messages.DefaultTenant); !errors.Is(err, dispatcher.ErrMemoryAway) {
				t.Errorf("a request: %v", err)
			}
		})
	}
}

// A plan that was worked is an example for the next run of its agent, until a person rates it down.
func TestRunsLearnFromPlans(t *testing.T) {
	t.Parallel()
	client := devFleet(t, `scenes:
  - {format: plan, repeat: true, turns: [{text: '{"steps": [{"id": "look", "description": "List the files.", "tool": "list_files", "args": {}}]}'}]}
  - {repeat: true, turns: [{text: "There are none."}]}
`)
	def := messages.Definition{
		Name: "planner", Planner: messages.PlannerPlan, Observe: messages.ObserveOnFailure, Tools: []string{"list_files"},
		Memory: &messages.MemoryPolicy{Recall: &messages.RecallPolicy{}, Learn: &messages.LearnPolicy{}},
	}
	if _, err := client.Agents().Apply(t.Context(), def, "", nil); err != nil {
		t.Fatal(err)
	}
	const task = "Which files are in the folder?"
	first := worked(t, client, "planner", task)
	run := messages.Ref{Tenant: messages.DefaultTenant, Run: first.ID}
	if len(first.Provenance.Memories) != 0 || len(first.MemoryDeltas) != 1 || first.MemoryDeltas[0].ID != run.Example() {
		t.Fatalf("the first run: %+v, %+v", first.Provenance.Memories, first.MemoryDeltas)
	}
	second := worked(t, client, "planner", task)
	if used := second.Provenance.Memories; len(used) != 1 || used[0].ID != run.Example() || used[0].Run != run.Run || used[0].Collection != "examples" {
		t.Fatalf("the second run was given %+v", used)
	}
	rate := func(r messages.Ref, f control.FeedbackRequest) *control.Feedback {
		t.Helper()
		said, err := client.Runs().AddFeedback(t.Context(), r, f)
		if err != nil {
			t.Fatal(err)
		}
		return said
	}
	if said := rate(run, control.FeedbackRequest{Comment: "Hm."}); said.Memory != nil {
		t.Errorf("a comment changes memory: %+v", said.Memory)
	}
	said := rate(run, control.FeedbackRequest{Score: new(-1.0), Control: "once"})
	want := &messages.MemoryChange{Memory: messages.MemoryLongTerm, Op: messages.MemoryDelete, Name: "examples", ID: run.Example()}
	if diff := cmp.Diff(want, said.Memory); diff != "" {
		t.Error(diff)
	}
	if again := rate(run, control.FeedbackRequest{Score: new(-1.0), Control: "once"}); again.ID != said.ID {
		t.Errorf("given again: %+v", again)
	}
	rate(messages.Ref{Tenant: run.Tenant, Run: second.ID}, control.FeedbackRequest{Score: new(1.0), StepID: "look", Comment: "Quick."})
	eventually(t, "the next run is given the example that was not rated down", func() bool {
		used := worked(t, client, "planner", task).Provenance.Memories
		return !slices.ContainsFunc(used, func(m messages.MemoryUsed) bool { return m.Run == run.Run }) &&
			slices.ContainsFunc(used, func(m messages.MemoryUsed) bool { return m.Run == second.ID })
	})
}
