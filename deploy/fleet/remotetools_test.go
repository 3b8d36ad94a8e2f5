//go:build unix

package fleet_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/remote"
)

// The example program in Go serves tools to a real worker. A run that needs them waits until the program is there; a program that does not
// answer a call with the effect once is not asked again, and the model is told; the tools are gone when the program is.
func TestToolsOfAnotherProgram(t *testing.T) {
	t.Parallel()
	program, err := harbour()
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := filepath.Abs("../examples/remote")
	if err != nil {
		t.Fatal(err)
	}
	w := open(t, shortAckWait, func(c *modelCall) reply {
		switch {
		case c.Task == "sail" && c.Turn == 0:
			return reply{Tool: "tide_table", Args: map[string]string{"harbour": "Cuxhaven", "day": "2026-11-23"}}
		case c.Turn == 0, c.Task == "sail" && c.Turn == 1:
			return reply{Tool: "book_pilot", Args: map[string]string{"ship": "Ann"}}
		default:
			return reply{Text: "Told: " + c.Last}
		}
	})
	def := messages.Definition{Name: "harbour", Tools: []string{"tide_table", "book_pilot"}, ToolTimeout: messages.Duration(3 * time.Second)}
	def.SetDefaults()
	if _, _, err := catalog.New(w.bus).PutAgent(t.Context(), def); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tools.yaml")
	grant := fmt.Sprintf("apiVersion: longshore.run/v1\nkind: Tools\nspec:\n  remote: {tools: [%q, %q]}\n", definitions+"/tide_table.json", definitions+"/book_pilot.json")
	if err := os.WriteFile(file, []byte(grant), 0o600); err != nil {
		t.Fatal(err)
	}
	w.worker("a", "LONGSHORE_TOOLS="+file)
	offered := func() bool {
		list, err := w.client.Fleet().Workers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(list, func(s messages.WorkerStatus) bool { return slices.Contains(s.Tools, "book_pilot") })
	}
	if offered() {
		t.Error("tools are offered that no program serves")
	}
	of := func(task *messages.Task) { task.Agent = "harbour" }
	first := w.watch(w.submit("sail", of)) // it waits
	serve := func() *process {
		p := spawn(t, "harbour", []string{"NATS_URL=" + w.nats}, program, definitions)
		return p
	}
	p := serve()
	r := first.end()
	completed(t, r, "Told: Pilot 1 comes to Ann")
	if len(r.Actions) != 2 || r.Actions[0].Code != "" {
		t.Errorf("actions %+v", r.Actions)
	}
	p.signal(syscall.SIGSTOP)
	second := w.watch(w.submit("book", of))
	r = second.end()
	completed(t, r, "Told: Tool book_pilot did not finish within 3s and was stopped. It may or may not have taken effect; check before you repeat it.")
	if len(r.Actions) != 1 || r.Actions[0].Code != messages.CodeToolUnknownOutcome {
		t.Errorf("actions %+v", r.Actions)
	}
	p.kill()
	eventually(t, "the tools are gone", func() bool { return !offered() })
}

// With the permissions of deploy/nats a worker finds and calls the tools of a program, as a process of its own, whose user is "tools". The
// program answers at the inbox of the call alone, whatever a worker names for the answer, and hears no call of which it is not told as a
// member of the queue group.
func TestPermissionsOfRemoteTools(t *testing.T) {
	dir, err := filepath.Abs("../examples/remote")
	if err != nil {
		t.Fatal(err)
	}
	binary, err := harbour()
	if err != nil {
		t.Fatal(err)
	}
	g := startGuarded(t)
	spawn(t, "harbour", []string{"NATS_URL=" + g.address("tools")}, binary, dir)
	asker := g.connect("worker")
	f, err := remote.Open(t.Context(), remote.Config{Tools: []string{"tide_table.json"}}, remote.Deps{NATS: asker, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	set, err := tools.NewSet(f.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the tool is offered", func() bool { return set.Has("tide_table") })
	args := json.RawMessage(`{"harbour":"Cuxhaven","day":"2026-11-23"}`)
	r, err := set.Call(t.Context(), "tide_table", tools.Call{Key: "k", Arguments: args})
	if err != nil || r.IsError || !strings.HasPrefix(r.Content[0].Text, "2026-11-23 04:12 high") {
		t.Errorf("result %+v, %v", r, err)
	}
	if denied := g.violations(); len(denied) > 0 {
		t.Errorf("refused: %v", denied)
	}
	refused := make(chan struct{}, 8)
	g.onRefusal(func() { refused <- struct{}{} })
	for _, at := range []string{"$JS.API.STREAM.PURGE.RUNS", "$KV.AGENTS.a", "longshore.approve", "_INBOX_worker.x"} {
		if err := asker.PublishRequest("tools.tide_table", at, args); err != nil {
			t.Fatal(err)
		}
		select {
		case <-refused:
		case <-time.After(patience):
			t.Fatalf("the program answers at %s", at)
		}
	}
	g.onRefusal(nil)
	if got := subjectsDenied(g.violations()); len(got) != 4 || !strings.HasPrefix(got[0], "tools: publish ") {
		t.Errorf("refused: %v", got)
	}
}
