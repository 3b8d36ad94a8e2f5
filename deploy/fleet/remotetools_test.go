//go:build unix

package fleet_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/micro"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/remote"
)

// The example program in Go serves tools to a real worker. A run that needs them waits until the program is there; a program that does not
// answer a call with the effect once is not asked again, and the model is told; the tools are gone when the program is.
func TestToolsOfAnotherProgram(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "harbour")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/longshore-run/longshore/deploy/examples/remote/go").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
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

// With the permissions of deploy/nats a worker finds and calls the tools of a program whose user is that of docs/tools/remote.md, and neither
// may do more for that.
func TestPermissionsOfRemoteTools(t *testing.T) {
	page, err := os.ReadFile("../../docs/tools/remote.md")
	if err != nil {
		t.Fatal(err)
	}
	snippet := regexp.MustCompile("(?s)```text\n(TOOLS = .*?)```").FindSubmatch(page)
	if snippet == nil {
		t.Fatal("the page has no user for programs")
	}
	file := filepath.Join(t.TempDir(), "tools.conf")
	if err := os.WriteFile(file, append(snippet[1], `authorization { users: [{ user: tools, password: x, permissions: $TOOLS }] }`...), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	g := startGuarded(t, &server.User{Username: "tools", Password: password("tools"), Permissions: opts.Users[0].Permissions})
	program, asker := g.connect("tools"), g.connect("worker")
	definition, err := os.ReadFile("../examples/remote/tide_table.json")
	if err != nil {
		t.Fatal(err)
	}
	service, err := micro.AddService(program, micro.Config{Name: remote.Service, Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = service.Stop() }()
	if err := service.AddEndpoint("tide_table", micro.HandlerFunc(func(r micro.Request) { _ = r.RespondJSON(map[string]string{"text": "high"}) }),
		micro.WithEndpointSubject("tools.tide_table"), micro.WithEndpointMetadata(map[string]string{remote.MetadataKey: string(definition)})); err != nil {
		t.Fatal(err)
	}
	if err := program.Flush(); err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.Abs("../examples/remote")
	if err != nil {
		t.Fatal(err)
	}
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
	r, err := set.Call(t.Context(), "tide_table", tools.Call{Key: "k", Arguments: json.RawMessage(`{"harbour":"Cuxhaven","day":"2026-11-23"}`)})
	if err != nil || r.IsError || r.Content[0].Text != "high" {
		t.Errorf("result %+v, %v", r, err)
	}
	if denied := g.violations(); len(denied) > 0 {
		t.Errorf("refused: %v", denied)
	}
	for _, subject := range []string{"tools.tide_table", "tasks.normal.acme.x", "longshore.agents.put", "runs.acme.x.log"} {
		if err := errors.Join(program.Publish(subject, nil), program.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "what the program publishes is refused", func() bool { g.mu.Lock(); defer g.mu.Unlock(); return len(g.denied) == 4 })
}
