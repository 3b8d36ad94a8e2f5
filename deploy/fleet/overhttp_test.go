//go:build unix

package fleet_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/longshore-run/longshore/deploy/command"
)

const overHTTPScript = `
scenes:
  - match: ask
    turns:
      - text: I ask.
        calls: [{name: ask_human, arguments: {question: Which?}}]
      - text: I write.
        calls: [{name: write_file, arguments: {filePath: a.txt, content: hi}}]
      - text: "Then ${lastToolResult}"
  - match: draft
    turns:
      - calls: [{name: write_file, arguments: {filePath: a.txt, content: hi}}]
      - text: written
  - match: slow
    turns: [{text: "one word after another", chunk: 3, pause: 20ms}]
  - match: long
    turns: [{text: "one two three one two three one two three one two three one two three one two three one two three one two three one two three one two three one two three one two three one two three one two three one two three one two three one two three one two three one two three one two three ", chunk: 4, pause: 50ms}]
  - match: fail
    turns: [{error: {class: auth, message: no such key, status: 401}}]
  - turns: [{text: Hello there}]
`

const overHTTPRules = `
apiVersion: longshore.run/v1
kind: Policy
spec: {tenants: {default: {tools: {deny: [list_files]}}}}
`

const overHTTPSuite = `
apiVersion: longshore.run/v1
kind: EvalSuite
metadata: {name: greeting}
spec: {cases: [{name: greets, input: hello, expect: {contains: [Hello]}}]}
`

// overHTTP is a fleet with authentication, and how commands are called on it.
type overHTTP struct {
	t          *testing.T
	nats, http []string
	dir        string
	called     *[]string // commands that worked over HTTP, by copies of it too
}

func openOverHTTP(t *testing.T) *overHTTP {
	t.Helper()
	h := &overHTTP{t: t, dir: t.TempDir(), called: new([]string)}
	h.file("script.yaml", overHTTPScript)
	h.start("127.0.0.1:0")
	h.http = append(h.http, "LONGSHORE_API_KEY="+h.key("*", "admin"))
	return h
}

// start starts the fleet, with its HTTP API at an address and more in its environment.
func (h *overHTTP) start(addr string, more ...string) *process {
	h.t.Helper()
	t, ready := h.t, filepath.Join(h.dir, "ready.json")
	env := append([]string{"LONGSHORE_AUTH=on", "LONGSHORE_ACK_WAIT=2s", "LONGSHORE_SCRIPT=" + filepath.Join(h.dir, "script.yaml")}, more...)
	dev := spawn(t, "dev", env, binary, "dev",
		"--data", filepath.Join(h.dir, "data"), "--addr", addr, "--nats-addr", "127.0.0.1:0", "--redis-addr", "127.0.0.1:0", "--ready-file", ready)
	dev.line("longshore is ready: ")
	data, err := os.ReadFile(ready)
	var at map[string]string
	if err != nil || json.Unmarshal(data, &at) != nil {
		t.Fatalf("%s, %v", data, err)
	}
	h.nats = []string{"NATS_URL=" + at["nats"]}
	h.http = []string{"LONGSHORE_URL=" + at["api"]}
	return dev
}

// key makes an API key.
func (h *overHTTP) key(tenant, role string) string {
	h.t.Helper()
	made := call(h.t, h.nats, "keys", "api", "create", "--tenant", tenant, "--role", role)
	if made.code != 0 {
		h.t.Fatalf("%+v", made)
	}
	return strings.TrimSpace(made.stdout)
}

func (h *overHTTP) file(name, text string) string {
	h.t.Helper()
	file := filepath.Join(h.dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return file
}

// do calls a command over HTTP, which must succeed and write each of the parts; it returns the output without its last line
// break.
func (h *overHTTP) do(command string, parts ...string) string {
	h.t.Helper()
	got := call(h.t, h.http, strings.Split(command, " ")...)
	if got.code != 0 || !containsAll(got.stdout+got.stderr, parts) {
		h.t.Errorf("longshore %s: %d\n%s\n%s\nwant %q", command, got.code, got.stdout, got.stderr, parts)
	}
	h.works(command)
	return strings.TrimSuffix(got.stdout, "\n")
}

// same calls a command that reads over NATS and over HTTP: what it writes is the same. When what it is about changes
// meanwhile, as the NATS side shows, it is called again.
func (h *overHTTP) same(command string) {
	h.t.Helper()
	args := strings.Split(command, " ")
	for before := call(h.t, h.nats, args...); ; {
		one := call(h.t, h.http, args...)
		if one == before && one.code == 0 {
			h.works(command)
			return
		}
		after := call(h.t, h.nats, args...)
		if after == before {
			h.t.Errorf("longshore %s: over NATS (-), over HTTP (+):\n%s", command, cmp.Diff(before, one, cmp.AllowUnexported(outcome{})))
			return
		}
		before = after
	}
}

// refused calls a command that fails alike over NATS and over HTTP, because of what the dispatcher answers.
func (h *overHTTP) refused(command string) {
	h.t.Helper()
	args := strings.Split(command, " ")
	over, one := call(h.t, h.nats, args...), call(h.t, h.http, args...)
	if over != one || one.code == 0 {
		h.t.Errorf("longshore %s: over NATS (-), over HTTP (+):\n%s", command, cmp.Diff(over, one, cmp.AllowUnexported(outcome{})))
	}
	h.works(command)
}

// Every command does over HTTP, with a key, what it does over NATS, or has a reason not to.
func TestCommandsOverHTTP(t *testing.T) {
	t.Parallel()
	h := openOverHTTP(t)

	// Runs.
	run := h.do("submit hello --label team=a --session talk")
	h.do("watch "+run, "completed")
	h.do("__complete watch "+run[:8], run)
	h.same("__complete agents get ")
	for _, command := range []string{"run hello --agent ", "eval suite.yaml --agent ", "policy test policy.yaml --agent "} {
		h.do("__complete "+command, "default")
	}
	h.do("__complete policy test policy.yaml "+run[:8], run)
	h.do("result "+run, "Hello there")
	h.do("result "+run+" --transcript -o json", "Hello there")
	h.do("run slow", "one word after another")
	h.do("feedback "+run+" --score 1 --comment good", "stored")
	h.do("watch "+h.do("retry "+run+" --force"), "completed")
	h.do("watch "+h.do("fork "+run+" --at 1"), "completed")
	h.do("logs " + run + " -f")
	h.do("cancel "+h.do("submit later --in 1h"), "cancelled")
	for _, command := range []string{
		"status " + run + " -o json", "result " + run + " -o json", "result " + run + " --transcript -o json", "why " + run, "watch " + run + " -o json",
		"list --label team=a -o json", "replay " + run, "stats --by agent", "index status", "sessions show talk -o json",
		"feedback " + run, "workers -o json",
	} {
		h.same(command)
	}
	h.do("sessions delete talk")
	h.do("watch "+h.do("submit draft --named-workspace drafts"), "completed")
	h.do("workspaces show drafts")
	h.same("workspaces ls")
	h.do("workspaces rm drafts")
	h.same("sessions list")
	h.do("memory put facts berth berth-7-is-closed --tag berths", "item berth was written to collection facts")
	h.do("memory put facts crane two-cranes --subject crane-2")
	for _, command := range []string{
		"memory ls -o json", "memory ls facts -o json", "memory show facts berth -o json", "memory search facts closed --tag berths -o json",
		"memory search facts closed --top-k 1", "memory ls facts --limit 1",
	} {
		h.same(command)
	}
	h.do("memory rm facts crane berth", "2 of 2 items removed")
	h.refused("memory show facts berth")
	guide := h.file("berths.md", "# Berths\n\nBerth 7 is closed until Friday.\n")
	h.do("memory import " + guide + " --collection guides")
	h.same("memory search guides closed -o json")
	h.do("memory put facts known pays-late --subject person-1")
	whose := h.do("submit about-a-person --label subject=person-1")
	h.do("watch "+whose, "")
	h.do("memory export --subject person-1 -o " + filepath.Join(h.dir, "person.tar.gz"))
	h.same("memory delete --subject person-1 --dry-run")
	h.do("memory delete --subject person-1 --yes", "subject person-1 of tenant default: 1 run, 1 item of long-term memory, 0 sessions erased")
	h.refused("status " + whose)

	// Agents, prompts, schedules.
	people := h.file("people.yaml", "apiVersion: longshore.run/v1\nkind: Agent\nmetadata: {name: people}\nspec: {tools: [ask_human, write_file], approve: {always: [write_file]}}\n")
	h.do("agents apply "+people, "people")
	h.file("people.yaml", "apiVersion: longshore.run/v1\nkind: Agent\nmetadata: {name: people}\nspec: {tools: [ask_human, list_files, write_file], approve: {always: [write_file]}}\n")
	h.do("agents apply "+people, "people")
	h.file("people.yaml", "apiVersion: longshore.run/v1\nkind: Agent\nmetadata: {name: other}\nspec: {tools: [ask_human]}\n")
	h.do("agents apply "+people, "other")
	h.do("agents delete other")
	for _, command := range []string{
		"agents list", "agents get people", "agents history people", "agents history other -o json", "agents diff people",
	} {
		h.same(command)
	}
	text := h.file("prompt.txt", "Hello {name}.")
	h.do("prompts put greet -f " + text)
	h.do("prompts render greet --var name=Kai", "Hello Kai.")
	for _, command := range []string{"prompts list", "prompts get greet", "prompts history greet"} {
		h.same(command)
	}
	h.do("prompts validate -f " + text)
	h.file("prompt.txt", "Good morning {name}.")
	h.do("prompts put greet -f " + text)
	h.same("prompts diff greet")
	h.do("prompts delete greet")
	daily := h.file("daily.yaml", "apiVersion: longshore.run/v1\nkind: Schedule\nmetadata: {name: daily}\nspec: {cron: \"0 6 * * *\", task: {input: hello}}\n")
	h.do("schedules apply -f " + daily)
	h.do("watch "+h.do("schedules run daily"), "completed")
	h.do("schedules pause daily")
	h.do("schedules resume daily")
	for _, command := range []string{"schedules list -o json", "schedules show daily -o json"} {
		h.same(command)
	}
	h.do("schedules delete daily")

	// People.
	asks := h.do("submit ask --agent people")
	h.waits(asks, "answer")
	h.same("inbox -o json")
	h.do("steer " + asks + " hurry")
	h.do("answer " + asks + " blue")
	h.waits(asks, "approval")
	h.same("approvals -o json")
	h.do("approve " + asks + " call_2_1")
	h.do("watch "+asks, "completed")
	for _, command := range []string{"files ls " + asks + " -o json", "files get " + asks + " a.txt", "files diff " + asks} {
		h.same(command)
	}
	asks = h.do("submit ask --agent people")
	h.waits(asks, "answer")
	h.do("answer " + asks + " red")
	h.waits(asks, "approval")
	h.do("deny " + asks + " call_2_1 --reason never")
	h.do("watch "+asks, "completed")

	// Batches.
	lines := h.file("lines.jsonl", "{\"custom_id\":\"a\",\"input\":\"hello\"}\n\n{\"custom_id\":\"b\",\"input\":\"fail\"}\n")
	h.do("batch submit "+lines+" --dry-run", "2")
	h.do("batch submit " + lines + " --id first")
	if got := call(t, h.http, "batch", "status", "first", "--wait"); !strings.Contains(got.stdout, "1 completed, 1 failed") {
		t.Errorf("%+v", got)
	}
	h.do("batch retry first --id second --failed")
	h.do("batch submit " + h.file("long.jsonl", "{\"custom_id\":\"a\",\"input\":\"long\"}\n") + " --id third")
	h.do("batch cancel third")
	h.same("batch list -o json")
	for _, command := range []string{"batch status first -o json", "batch results first", "batch results first --order completion"} {
		h.same(command)
	}
	h.file("lines.jsonl", "{\"custom_id\":\"a\",\"input\":\"hello\"}\nnonsense\n")
	if got := call(t, h.http, "batch", "submit", lines); got.code == 0 || !strings.Contains(got.stderr, "line 2") {
		t.Errorf("a wrong line: %+v", got)
	}

	// The fleet.
	h.do("pause agent people --reason maintenance")
	h.do("resume agent people")
	h.do("quotas set tenant acme --max-queued 7")
	h.do("quotas set tenant acme --per-minute 60")
	for _, command := range []string{"quotas list", "quotas show tenant acme -o json", "lanes --all -o json", "dead list"} {
		h.same(command)
	}
	h.do("quotas delete tenant acme")
	h.do("policy test " + h.file("policy.yaml", overHTTPRules) + " " + run)
	h.do("eval " + h.file("suite.yaml", overHTTPSuite))
	for _, command := range []string{"dead show 1", "drain nothing"} {
		h.refused(command)
	}
	h.do("dead redrive --all")
	h.do("dead purge --all --yes")
	h.do("index rebuild", "behind")
	h.do("top --tenant default --once -o json", `"workers":[{"name"`)

	// Keys, and who may do what: a tenant's key needs no --tenant, and does no more than its role.
	viewer := h.do("keys api create --tenant acme --role submitter --name theirs")
	h.same("keys api list -o json")
	h.do("keys api revoke " + strings.Split(h.do("keys api create --tenant acme --role viewer --name old"), "_")[1])
	theirs := *h
	theirs.http = []string{h.http[0], "LONGSHORE_API_KEY=" + viewer}
	own := theirs.do("submit hello")
	theirs.do("watch "+own, "completed")
	theirs.do("result "+own, "Hello there")
	if got := call(t, h.nats, "status", own, "--tenant", "acme"); got.code != 0 {
		t.Errorf("it is no run of the key's tenant: %+v", got)
	}
	for command, want := range map[string]string{
		"pause agent people": "role", "memory delete --subject x --yes": "role", "status " + own + " --tenant other": "tenant", "drain x": "role", "keys api list": "role",
	} {
		if got := call(t, theirs.http, strings.Split(command, " ")...); got.code == 0 || !strings.Contains(got.stderr, want) {
			t.Errorf("%s with the key of a submitter: %+v", command, got)
		}
	}
	h.coverTree()
}

// notOverHTTP are the commands that do not speak to a dispatcher's HTTP API, with the reason.
func notOverHTTP() map[string]string {
	const (
		process = "is a process of a fleet, or starts one"
		offline = "speaks to no fleet"
		streams = "reads NATS itself, and says so when LONGSHORE_URL is set"
	)
	return map[string]string{
		"dev": process, "dispatcher": process, "worker": process,
		"health":        "asks a process of its own machine",
		"agents schema": offline, "memory quality": offline, "audit export": offline, "audit key": offline, "audit verify": offline, "keys control": offline, "keys generate": offline, "keys rotate add": offline, "keys rotate promote": offline,
		"prices import": offline, "prices list": offline, "tools list": offline, "tools pin": offline, "version": offline, "webhook-key": offline,
		"keys status": streams, "keys rotate tenants": streams, "keys rotate retire": streams, "keys destroy": streams, "keys renew": streams,
		"init": streams, "doctor": streams, "doctor files": streams, "doctor runs": streams, "audit run": streams, "audit fetch": streams,
	}
}

// works notes that a command worked over HTTP.
func (h *overHTTP) works(command string) { *h.called = append(*h.called, command) }

// coverTree fails for a command that neither worked over HTTP nor has a reason.
func (h *overHTTP) coverTree() {
	h.t.Helper()
	left := notOverHTTP()
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		path := strings.TrimPrefix(cmd.CommandPath(), "longshore ")
		worked := slices.ContainsFunc(*h.called, func(c string) bool { return strings.HasPrefix(c+" ", path+" ") })
		reason, excused := left[path]
		switch {
		case !cmd.Runnable() || cmd.HasSubCommands() && !excused && !worked:
		case worked == excused:
			h.t.Errorf("longshore %s: worked over HTTP: %t; excused: %q. Call it in this test, or give its reason in notOverHTTP", path, worked, reason)
		}
		delete(left, path)
		for _, child := range cmd.Commands() {
			look(child)
		}
	}
	look(command.Tree(command.Process{Version: "test", Environ: func() []string { return nil }, Stdout: io.Discard, Stderr: io.Discard}))
	for path := range left {
		h.t.Errorf("there is no longshore %s", path)
	}
}

// waits returns once a run waits for something of a person.
func (h *overHTTP) waits(run, reason string) {
	h.t.Helper()
	p := spawn(h.t, "watch "+run, h.http, binary, "watch", run)
	p.line("waiting for " + reason)
	p.kill()
}

// A watch over HTTP continues after its dispatcher was killed and another one answers at its address: every event once.
func TestWatchOverHTTPGoesOn(t *testing.T) {
	t.Parallel()
	h := &overHTTP{t: t, dir: t.TempDir(), called: new([]string)}
	h.file("script.yaml", overHTTPScript)
	dev := h.start("127.0.0.1:0")
	h.http = append(h.http, "LONGSHORE_API_KEY="+h.key("*", "admin"))
	run := h.do("submit long")
	watch := spawn(t, "watch", h.http, binary, "watch", run)
	watch.line("started: ")
	dev.kill()
	h.start(strings.TrimPrefix(h.http[0], "LONGSHORE_URL=http://"))
	if code := watch.wait(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
	for _, once := range []string{"started: ", "completed ("} {
		if n := strings.Count(strings.Join(watch.log(), "\n"), once); n != 1 {
			t.Errorf("%q %d times", once, n)
		}
	}
}

// What prevents a command is reported with the variable that fixes it.
func TestMistakesOverHTTP(t *testing.T) {
	t.Parallel()
	h := openOverHTTP(t)
	address := h.http[0]
	for name, is := range map[string]struct {
		env     []string
		command string
		want    string
	}{
		"no key":      {[]string{address}, "workers", "LONGSHORE_API_KEY"},
		"a wrong key": {[]string{address, "LONGSHORE_API_KEY=lsk_x"}, "workers", "LONGSHORE_API_KEY"},
		"no address":  {[]string{"LONGSHORE_URL=here"}, "workers", "LONGSHORE_URL: must be one such as https://longshore.example.com"},
		"a password":  {[]string{"LONGSHORE_URL=http://me:secret@127.0.0.1"}, "workers", "LONGSHORE_URL: must have no user"},
		"no server":   {[]string{"LONGSHORE_URL=http://127.0.0.1:1"}, "submit x", "no dispatcher answers at http://127.0.0.1:1"},
		"both":        {append(h.nats, address), "workers", "LONGSHORE_URL and NATS_URL are both set"},
		"a key alone": {[]string{"LONGSHORE_API_KEY=lsk_x"}, "workers", "set LONGSHORE_URL too"},
		"top of all":  {h.http, "top --once", "tenant: is missing: over HTTP the events of one tenant are followed"},
		"checks":      {h.http, "doctor", "unset it and set NATS_URL"},
		"auditor":     {h.http, "audit run", "unset it and set NATS_URL"},
		"audit":       {h.http, "audit fetch", "unset it and set NATS_URL"},
		"no run":      {h.http, "status nothing", "no run nothing of tenant default"},
		"no agent":    {h.http, "submit x --agent nothing", "nothing"},
		"stored logs": {h.http, "doctor runs", "unset it and set NATS_URL"},
		"stray files": {h.http, "doctor files", "unset it and set NATS_URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := call(t, is.env, strings.Split(is.command, " ")...)
			if got.code == 0 || !strings.Contains(got.stderr, is.want) || strings.Contains(got.stderr, "secret@") {
				t.Errorf("%+v, want %q", got, is.want)
			}
		})
	}
}
