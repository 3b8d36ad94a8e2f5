//go:build unix

package fleet_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/messages/document"
)

// blocks are the examples of a page of docs/tools in some language.
func blocks(t *testing.T, page, language string) (out []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "tools", page))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?s)\n```([a-z]*)\n(.*?)\n```\n").FindAllStringSubmatch(string(text), -1) {
		if m[1] == language {
			out = append(out, m[2])
		}
	}
	return out
}

// apply stores the agent of a page.
func (w *town) apply(file string) (name string) {
	w.t.Helper()
	doc, err := document.Only([]byte(file), 1<<20)
	if err != nil {
		w.t.Fatal(err)
	}
	var agent struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec messages.Definition `json:"spec"`
	}
	if err := json.Unmarshal(doc.JSON, &agent); err != nil {
		w.t.Fatal(err)
	}
	agent.Spec.Name = agent.Metadata.Name
	agent.Spec.SetDefaults()
	if _, _, err := catalog.New(w.bus).PutAgent(w.t.Context(), agent.Spec); err != nil {
		w.t.Fatal(err)
	}
	return agent.Spec.Name
}

// The agents, the files and the call of docs/tools/remote.md and docs/tools/delegate.md work in a fleet as the pages say, with the program
// that the first one names.
func TestPagesOfRemoteAndDelegate(t *testing.T) {
	t.Parallel()
	remote, definitions := blocks(t, "remote.md", "yaml"), blocks(t, "remote.md", "json")
	delegate, asked := blocks(t, "delegate.md", "yaml"), blocks(t, "delegate.md", "json")
	if len(remote) != 2 || len(definitions) != 1 || len(delegate) != 1 || len(asked) != 1 {
		t.Fatalf("the pages have %d and %d files, %d definitions, %d calls", len(remote), len(delegate), len(definitions), len(asked))
	}
	says := func(c *modelCall) reply {
		switch {
		case c.Task == "sail" && c.Turn == 0:
			return reply{Tool: "tide_table", Args: map[string]string{"harbour": "Cuxhaven", "day": "2026-11-23"}}
		case c.Task == "sail" && c.Turn == 1:
			return reply{Tool: "book_pilot", Args: map[string]string{"ship": "Ann"}}
		case c.Task == "edit" && c.Turn == 0:
			return reply{Tool: "delegate", Args: json.RawMessage(asked[0])}
		case c.Task == "When was the harbour built?":
			return reply{Text: "In 1888."}
		case c.Task == "Is this a sentence: It leaks.":
			return reply{Text: "Yes."}
		default:
			return reply{Text: "Told: " + c.Last}
		}
	}
	w := open(t, shortAckWait, func(c *modelCall) reply {
		r := says(c)
		r.Usage = 10 // the agent has a budget, so each call must have a cost
		return r
	})
	dir := t.TempDir()
	pilot, err := os.ReadFile("../examples/remote/book_pilot.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"tools.yaml": remote[0], "tide_table.json": definitions[0], "book_pilot.json": string(pilot),
		"prices.yaml": "version: 1\ncurrency: USD\ndate: 2026-01-02\nsource: test\nprices:\n- {provider: openai, models: [fake], input: 1, output: 1}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program, err := harbour()
	if err != nil {
		t.Fatal(err)
	}
	pilotage, editor := w.apply(remote[1]), w.apply(delegate[0])
	for _, child := range []string{"researcher", "reviewer"} {
		w.apply("metadata: {name: " + child + "}\nspec: {}\n")
	}
	w.worker("a", "LONGSHORE_TOOLS="+filepath.Join(dir, "tools.yaml"), "LONGSHORE_PRICES="+filepath.Join(dir, "prices.yaml"))
	spawn(t, "harbour", []string{"NATS_URL=" + w.nats}, program, dir)

	as := func(agent string) func(*messages.Task) { return func(task *messages.Task) { task.Agent = agent } }
	booked := w.watch(w.submit("sail", as(pilotage))).end()
	completed(t, booked, "Told: Pilot 1 comes to Ann")
	if len(booked.Actions) != 2 || booked.Actions[0].Code != "" {
		t.Errorf("actions %+v", booked.Actions)
	}

	edited := w.watch(w.submit("edit", as(editor))).end()
	told, _ := edited.Result.(string)
	var children []struct {
		Agent  string `json:"agent"`
		Run    string `json:"run"`
		Status string `json:"status"`
		Output string `json:"output"`
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(told, "Told: ")), &children); err != nil || edited.Status != messages.StatusCompleted {
		t.Fatalf("%s %s: %v, %v", edited.Status, told, err, edited.Error)
	}
	for i, want := range []struct{ agent, output string }{{"researcher", "In 1888."}, {"reviewer", "Yes."}} {
		if len(children) != 2 || children[i].Agent != want.agent || children[i].Output != want.output || children[i].Status != "completed" || children[i].Run == "" {
			t.Fatalf("children %+v", children)
		}
	}
}
