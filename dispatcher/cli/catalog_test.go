package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const writerFile = `
apiVersion: longshore.run/v1
kind: Agent
metadata: {name: writer, description: Writes.}
spec:
  instructions: You write.
  maxSteps: 8
`

// file writes a file and returns its name.
func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func (f *fleet) says(t *testing.T, want string, args ...string) {
	t.Helper()
	if out, _ := f.run(t, args...); out != want {
		t.Errorf("%v: %s", args, cmp.Diff(want, out))
	}
}

// comparison is a diff as JSON.
type comparison struct {
	From int     `json:"from"`
	To   int     `json:"to"`
	Diff *string `json:"diff"`
}

// compares checks the JSON of a diff by what the same command line writes as text.
func (f *fleet) compares(t *testing.T, from, to int, args ...string) {
	t.Helper()
	text, _ := f.run(t, args...)
	out, _ := f.run(t, append(args, "-o", "json")...)
	var got comparison
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if diff := cmp.Diff(comparison{from, to, &text}, got); diff != "" {
		t.Errorf("%v: %s", args, diff)
	}
}

func TestAgentsFromApplyToDelete(t *testing.T) {
	f := newFleet(t)
	name := file(t, writerFile)
	out, _ := f.run(t, "agents", "apply", "-f", name, "--if-revision", "0", "--by", "ann")
	var one, two int
	if _, err := fmt.Sscanf(out, "agent writer applied, revision %d\n", &one); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	f.says(t, fmt.Sprintf("agent writer unchanged, revision %d\n", one), "agents", "apply", "-f", name)
	if _, _, err := executeWith(t, f.connect, strings.Replace(writerFile, "8", "9", 1), "agents", "apply", "-f", "-", "--by", "bob"); err != nil {
		t.Fatal(err)
	}
	f.fails(t, "agent writer: it has changed in the meantime: see `longshore agents history writer`, and try again",
		"agents", "apply", "-f", name, "--if-revision", strconv.Itoa(one))
	out, _ = f.run(t, "agents", "diff", "writer")
	for _, want := range []string{"\n-  maxSteps: 8\n+  maxSteps: 9\n", "@@ -", fmt.Sprintf("--- writer revision %d\n", one)} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in the diff:\n%s", want, out)
		}
	}
	out, _ = f.run(t, "agents", "history", "writer")
	if lines := strings.Split(out, "\n"); len(lines) != 4 || !strings.Contains(lines[1], "bob") || !strings.Contains(lines[2], "ann") {
		t.Errorf("history:\n%s", out)
	}
	if out, _ = f.run(t, "agents", "get", "writer", "--revision", strconv.Itoa(one)); !strings.Contains(out, "maxSteps: 8") {
		t.Errorf("get:\n%s", out)
	}
	f.says(t, out, "agents", "get", "writer", "--revision", strconv.Itoa(one), "-o", "yaml")
	if out, _ = f.run(t, "agents", "list"); !strings.Contains(out, "writer") || !strings.Contains(out, "default") {
		t.Errorf("list:\n%s", out)
	}
	if out, _ = f.run(t, "agents", "history", "writer", "-o", "json"); !strings.Contains(out, fmt.Sprintf(`"revision":%d`, one)) {
		t.Errorf("history: %s", out)
	}
	if _, err := fmt.Sscanf(out, `{"name":"writer","revision":%d`, &two); err != nil || two <= one {
		t.Errorf("history: %s", out)
	}
	f.compares(t, one, two, "agents", "diff", "writer")
	f.compares(t, one, one, "agents", "diff", "writer", strconv.Itoa(one), strconv.Itoa(one))
	f.says(t, "agent writer deleted\n", "agents", "delete", "writer", "--if-revision", strconv.Itoa(two))
	f.fails(t, "no such agent or revision: writer; see `longshore agents list` and `longshore agents history writer`", "agents", "get", "writer")
	f.fails(t, "no such agent or revision: writer; see `longshore agents list` and `longshore agents history writer`", "agents", "delete", "writer")
	f.says(t, fmt.Sprintf("agent writer applied, revision %d\n", two+2), "agents", "apply", "-f", filepath.Dir(name))
}

func TestPromptsFromPutToDelete(t *testing.T) {
	f := newFleet(t)
	var one, two int
	out, _ := f.run(t, "prompts", "put", "greet", "-f", file(t, "Hi {name}.\nBye."), "--require", "name", "--tag", "a,b", "--metadata", `{"x":1}`, "--by", "ann")
	if _, err := fmt.Sscanf(out, "prompt greet, version %d\n", &one); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	out, _ = f.run(t, "prompts", "put", "greet", "-f", file(t, "Hello {name}.\nBye."), "--if-version", strconv.Itoa(one), "--by", "ann")
	if _, err := fmt.Sscanf(out, "prompt greet, version %d\n", &two); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	f.says(t, fmt.Sprintf("--- greet revision %d\n+++ greet revision %d\n@@ -1,2 +1,2 @@\n-Hi {name}.\n+Hello {name}.\n Bye.\n", one, two), "prompts", "diff", "greet")
	f.compares(t, one, two, "prompts", "diff", "greet")
	f.compares(t, two, two, "prompts", "diff", "greet", strconv.Itoa(two))
	f.says(t, "Hi {name}.\nBye.", "prompts", "get", "greet", "--version", strconv.Itoa(one))
	out, told := f.run(t, "prompts", "render", "greet", "--vars", `{"name":"x"}`, "--var", "name=A\x1b[2J")
	if out != "Hello A\\x1b[2J.\nBye." || told != fmt.Sprintf("version %d, about 5 tokens\n", two) {
		t.Errorf("render: %q, %q", out, told)
	}
	f.fails(t, "prompt greet: vars: missing: name", "prompts", "render", "greet", "--version", strconv.Itoa(one))
	if out, _ = f.run(t, "prompts", "list", "--name", "gre"); !strings.Contains(out, "greet  ") || !strings.Contains(out, "ann") {
		t.Errorf("list:\n%s", out)
	}
	if out, _ = f.run(t, "prompts", "list", "--tag", "zzz", "-o", "json"); out != "" {
		t.Errorf("list: %s", out)
	}
	bad := file(t, "{% include 'x' %}")
	f.says(t, "right; variables: a\n", "prompts", "validate", "-f", file(t, "{a}"))
	f.fails(t, bad+": text: the tag include is not one that a prompt may use", "prompts", "validate", "-f", bad, "--engine", "liquid")
	f.fails(t, "prompt p: prompt: text: the tag include is not one that a prompt may use", "prompts", "put", "p", "-f", bad, "--engine", "liquid")
	if out, _ = f.run(t, "prompts", "history", "greet"); strings.Count(out, "ann") != 2 {
		t.Errorf("history:\n%s", out)
	}
	f.says(t, "prompt greet deleted\n", "prompts", "delete", "greet")
	f.fails(t, "no such prompt or revision: greet; see `longshore prompts list` and `longshore prompts history greet`", "prompts", "get", "greet")
	f.fails(t, "prompt once: there is only one revision: nothing to compare", func() []string {
		f.run(t, "prompts", "put", "once", "-f", file(t, "x"))
		return []string{"prompts", "diff", "once"}
	}()...)
}

func TestSchemaOfAgentsIsJSONAnyway(t *testing.T) {
	text, _, _, err := dry(t, "", "agents", "schema")
	if err != nil || !json.Valid([]byte(text)) {
		t.Errorf("%v in %q", err, text)
	}
	if out, _, _, err := dry(t, "", "agents", "schema", "-o", "json"); err != nil || out != text {
		t.Errorf("%v: %s", err, cmp.Diff(text, out))
	}
}

func TestCatalogWithoutADispatcher(t *testing.T) {
	f := newStreams(t)
	f.fails(t, "no dispatcher answers: start one with `longshore dispatcher`, or a whole fleet with `longshore dev`", "prompts", "list")
}

func TestCatalogMistakesNeverConnect(t *testing.T) {
	const token = "must be 1 to 64 characters of A-Z a-z 0-9 _ -"
	good, text := file(t, writerFile), file(t, "x")
	for name, tc := range map[string]struct{ args, want string }{
		"no group command":   {"agents|aply", `unknown command "aply" for "longshore agents" (did you mean apply?)`},
		"apply of nothing":   {"agents|apply", `needs a file or a folder: longshore agents apply ./agents`},
		"apply of no file":   {"agents|apply|-f|" + good + "x", "open " + good + "x: no such file or directory: check the name and that this process may read it"},
		"apply of no agent":  {"agents|apply|-f|" + text, text + ": body: must be an object, not a string"},
		"revision of folder": {"agents|apply|-f|" + filepath.Dir(text) + "|--if-revision|1", "read agent " + text + ": body: must be an object, not a string"},
		"hostile name":       {"agents|get|>", "name of an agent: " + token},
		"no name":            {"agents|delete", "needs the name of an agent, got 0 arguments"},
		"strange output":     {"agents|get|a|-o|xml", `--output: must be yaml or json, got "xml"`},
		"strange diff":       {"agents|diff|a|-o|yaml", `--output: must be text or json, got "yaml"`},
		"revision of words":  {"agents|diff|a|one", `"one" is not a revision`},
		"many revisions":     {"agents|diff|a|1|2|3", "needs the name of an agent, and two revisions at most; got 4 arguments"},
		"prompt of no text":  {"prompts|put|a|-f|" + file(t, ""), "text: is empty"},
		"prompt of jinja":    {"prompts|put|a|-f|" + text + "|--engine|jinja", `engine: "jinja" is not an engine; known: fstring, mustache, handlebars, liquid`},
		"metadata of a list": {"prompts|put|a|-f|" + text + "|--metadata|[]", "--metadata: must be a JSON object"},
		"variable":           {"prompts|render|a|--var|x", `--var: "x" is not name=text`},
		"variables":          {"prompts|render|a|--vars|1", "--vars: must be a JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, connects, err := dry(t, "", strings.Split(tc.args, "|")...)
			if err == nil || connects > 0 || err.Error() != tc.want {
				t.Errorf("%d connections, %v; want %s", connects, err, tc.want)
			}
		})
	}
}
