package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/credential"
	"github.com/longshore-run/longshore/tools/mcp"
	"github.com/longshore-run/longshore/tools/toolstest"
)

// Every tool of a server keeps the promises of tools, and so do those that read resources and prompts. The next worker, whose server is
// another process, gives it the same key.
func TestConformance(t *testing.T) {
	s := stdio(t, "sdk")
	s.Resources, s.Prompts, s.Effects = true, true, map[string]messages.Effect{"add": messages.EffectIdempotent, "sum": messages.EffectRead}
	f, _ := one(t, s)
	added := func() int { return len(note(s, "added")) }
	cases := map[string]toolstest.Case{
		"s_add": {Arguments: `{"text":""}`, Effects: added}, "s_echo": {Arguments: `{"text":"a"}`}, "s_fail": {Arguments: `{"text":""}`, Fails: true},
		"s_sum": {Arguments: `{"a":1,"b":2}`}, "s_list_resources": {Arguments: `{}`}, "s_read_resource": {Arguments: `{"uri":"notes://today"}`},
		"s_list_prompts": {Arguments: `{}`}, "s_get_prompt": {Arguments: `{"name":"greet","arguments":{"who":"x"}}`},
	}
	n := 0
	for i, tool := range f.Tools() {
		c, ok := cases[tool.Spec().Name]
		if !ok {
			continue
		}
		c.Restarted = func() (tools.Tool, error) {
			next, _ := one(t, s)
			return next.Tools()[i], nil
		}
		toolstest.Run(t, tool, c)
		n++
	}
	if n != len(cases) {
		t.Errorf("%d tools of %d were there", n, len(cases))
	}
}

func TestAnswers(t *testing.T) {
	s := stdio(t, "sdk")
	s.Resources, s.Prompts = true, true
	s.Effects = map[string]messages.Effect{"echo": messages.EffectRead}
	_, set := one(t, s)
	for name, c := range map[string]struct {
		args any
		want string
	}{
		"s_echo":           {map[string]any{"text": "hello"}, "hello"},
		"s_key":            {map[string]any{"text": ""}, "r.1.c"},
		"s_sum":            {map[string]any{"a": 2, "b": 3}, `{"sum":5}`},
		"s_list_resources": {map[string]any{}, "notes://today today: What is to do\n1 resourcesnotes://{day} of a day: \n1 templates of URIs"},
		"s_read_resource":  {map[string]any{"uri": "notes://today"}, "buy rope"},
		"s_list_prompts":   {map[string]any{}, "greet (who): Greets\n1 prompts"},
		"s_get_prompt":     {map[string]any{"name": "greet", "arguments": map[string]any{"who": "Ada"}}, "user:Greet Ada"},
	} {
		if r := call(t, set, name, c.args); r.IsError || text(r) != c.want {
			t.Errorf("%s: %v %q, want %q", name, r.IsError, text(r), c.want)
		}
	}
	// The server's hint that all of them only read is not believed.
	if set.Effect("s_echo") != messages.EffectRead || set.Effect("s_key") != messages.EffectOnce || set.Effect("s_read_resource") != messages.EffectRead {
		t.Error("effects are not those of the operator")
	}
	for _, name := range []string{"s_echo", "s_read_resource"} { // a call may hold the largest answer of its server, while it is read
		if w := set.Weight(name, &tools.Call{}); w != 3*4<<20+tools.DefaultWeight {
			t.Errorf("a call of %s weighs %d", name, w)
		}
	}
	r := call(t, set, "s_many", map[string]any{"text": ""})
	want := "ab(audio of 1 bytes, audio/wav, was left out)(a resource: file:///a b a)inside(the resource x://z of 3 bytes, application/zip, is no text and was left out)"
	if text(r) != want || len(r.Content) != 6 || r.Content[1].Image == nil {
		t.Errorf("%q", text(r))
	}
	if r := call(t, set, "s_long", map[string]any{"text": ""}); len(text(r)) > 901<<10 || fmt.Sprintf("%s", r.Meta["truncated"]) != "true" {
		t.Errorf("%d bytes, %s", len(text(r)), r.Meta)
	}
	expect(t, call(t, set, "s_fail", map[string]any{"text": ""}), messages.CodeToolFailed, "the [31mdisk is full")
	expect(t, call(t, set, "s_read_resource", map[string]any{"uri": "notes://never"}), messages.CodeToolFailed, "answered with the error")
}

// What a server asks of its client is refused, and the call continues.
func TestServersMayNotAsk(t *testing.T) {
	_, set := one(t, stdio(t, "sdk"))
	r := call(t, set, "s_demand", map[string]any{"text": ""})
	lines := strings.Split(text(r), "\n")
	if r.IsError || len(lines) != 3 || slices.ContainsFunc(lines, func(l string) bool { return l == "<nil>" }) {
		t.Errorf("%v %s", r.IsError, text(r))
	}
}

// Attack 119: a process knows what the operator gave it, and nothing of the worker.
func TestAttack119CleanEnvironment(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-of-the-worker")
	d := deps(t, map[string]credential.Config{"tracker": {Env: "X"}})
	s := with(stdio(t, "sdk"), map[string]string{"MODE": "fast"})
	s.Secrets = map[string]string{"TRACKER_TOKEN": "tracker"}
	cfg := checked(t, map[string]mcp.Server{"s": s}, d)
	_, set := opened(t, cfg, pinned(t, cfg, d), d)
	r := call(t, set, "s_env", map[string]any{"text": ""})
	want := "GORACE=atexit_sleep_ms=10\nHOME=/nowhere\nMCP_TEST_DIR=" + s.Env["MCP_TEST_DIR"] + "\nMCP_TEST_SERVER=sdk\nMODE=fast\nPATH=" + d.Path + "\nTRACKER_TOKEN=[redacted]"
	if diff := cmp.Diff(want, text(r)); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	none := func(c *tools.Call) { c.Grants.Credentials = []string{} }
	expect(t, call(t, set, "s_env", map[string]any{"text": ""}, none), messages.CodePolicy, `"tracker", is not in the agent's grants`)
}

// A call that dies with its server is reported as what it may have done, once, and the server comes again.
func TestCrashInACall(t *testing.T) {
	s := stdio(t, "sdk")
	s.Tools, s.Effects = []string{"crash", "echo"}, map[string]messages.Effect{"echo": messages.EffectRead}
	f, set := one(t, s)
	expect(t, call(t, set, "s_crash", map[string]any{"text": ""}), messages.CodeToolUnknownOutcome, "may or may not have taken effect")
	if got := note(s, "effects"); got != "x" {
		t.Errorf("%d effects", len(got))
	}
	if r := call(t, set, "s_echo", map[string]any{"text": "again"}); text(r) != "again" { // waits for the process to be started again
		t.Errorf("%+v", r)
	}
	if err := f.Degraded(); err != nil {
		t.Error(err)
	}
}

// A call with the effect idempotent that dies with its server is made again with the same key.
func TestCrashInAnIdempotentCall(t *testing.T) {
	s := stdio(t, "sdk")
	s.Effects = map[string]messages.Effect{"crash": messages.EffectIdempotent}
	_, set := one(t, s)
	r := call(t, set, "s_crash", map[string]any{"text": ""})
	expect(t, r, messages.CodeToolFailed, "gave no answer")
	if got := note(s, "effects"); len(got) != 3 {
		t.Errorf("%d attempts", len(got))
	}
}

// A call that is cancelled ends at once, and the server is told.
func TestCancel(t *testing.T) {
	s := stdio(t, "sdk")
	_, set := one(t, s)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	stop := errors.New("stop")
	go func() {
		until(t, "the call begins", func() bool { return note(s, "began") == "x" })
		cancel(stop)
	}()
	_, err := set.Call(ctx, "s_wait", tools.Call{Arguments: []byte(`{"text":""}`)})
	if !errors.Is(err, stop) {
		t.Errorf("error %v", err)
	}
	until(t, "the server is told", func() bool { return note(s, "cancelled") == "x" })
}

func TestTimeout(t *testing.T) {
	s := stdio(t, "sdk")
	s.Timeout = messages.Duration(time.Second)
	_, set := one(t, s)
	began := time.Now()
	expect(t, call(t, set, "s_wait", map[string]any{"text": ""}), messages.CodeToolUnknownOutcome, "did not finish within 1s")
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	until(t, "the server is told", func() bool { return note(s, "cancelled") == "x" })
}

// Many calls at once get the answers of their own.
func TestConcurrency(t *testing.T) {
	_, set := one(t, stdio(t, "sdk"))
	var calls sync.WaitGroup
	for i := range 200 {
		calls.Go(func() {
			want := strconv.Itoa(i)
			if r, err := try(t, set, "s_echo", map[string]any{"text": want}); err != nil || text(r) != want {
				t.Errorf("%d: %q %v", i, text(r), err)
			}
		})
	}
	calls.Wait()
}

// A worker starts without its servers, and offers their tools while they are there.
func TestAServerThatComesLater(t *testing.T) {
	s := stdio(t, "sdk")
	d := deps(t, nil)
	lock := pinned(t, checked(t, map[string]mcp.Server{"s": s}, d), d)
	link := filepath.Join(t.TempDir(), "server")
	self := s.Command[0]
	s.Command = []string{link}
	cfg := checked(t, map[string]mcp.Server{"s": s}, d)
	f, set := opened(t, cfg, lock, d)
	if set.Has("s_echo") || len(set.Names()) != 0 {
		t.Errorf("a server that is away offers %v", set.Names())
	}
	if err := f.Degraded(); err == nil || err.Error() != "the MCP server s is away" {
		t.Errorf("degraded: %v", err)
	}
	short := func(c *tools.Call) { c.Timeout = time.Second; zero := 0; c.Retries = &zero }
	r := call(t, set, "s_echo", map[string]any{"text": "a"}, short)
	if !r.IsError {
		t.Errorf("%+v", r)
	}
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	until(t, "the server comes", func() bool { return set.Has("s_echo") })
	if r := call(t, set, "s_echo", map[string]any{"text": "a"}); text(r) != "a" {
		t.Errorf("%+v", r)
	}
}

// A lock file is read as it was written, and a description that the operator wrote stays while the definition does.
func TestLockFile(t *testing.T) {
	d := deps(t, nil)
	s := stdio(t, "sdk")
	s.Tools = []string{"echo"}
	cfg := checked(t, map[string]mcp.Server{"s": s}, d)
	lock := pinned(t, cfg, d)
	p := lock.Servers["s"]["echo"]
	p.Description = "Repeats a text."
	lock.Servers["s"]["echo"] = p
	file := filepath.Join(t.TempDir(), mcp.DefaultLock)
	lock.APIVersion, lock.Kind = "longshore.run/v1", "ToolsLock"
	if err := lock.Write(file); err != nil {
		t.Fatal(err)
	}
	read, err := mcp.ReadLock(file)
	if err != nil {
		t.Fatal(err)
	}
	all, err := mcp.Inspect(t.Context(), cfg, read, "s", d)
	if err != nil || len(all) != 1 || all[0].State != mcp.Pinned {
		t.Fatalf("%+v %v", all, err)
	}
	read.Pin("s", all)
	_, set := opened(t, cfg, read, d)
	specs, err := set.Specs([]string{"s_echo"})
	if err != nil || specs[0].Description != "Repeats a text." {
		t.Errorf("%+v %v", specs, err)
	}
	for name, content := range map[string]string{"kind": `{"apiVersion":"longshore.run/v1","kind":"Lock","servers":{}}`, "servers.s.a.sha": `{"apiVersion":"longshore.run/v1","kind":"ToolsLock","servers":{"s":{"a":{"sha":"x"}}}}`} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := mcp.ReadLock(file); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A mistake of the operator names its field.
func TestConfigIsChecked(t *testing.T) {
	d := deps(t, map[string]credential.Config{"tracker": {Env: "X", Hosts: []string{"mcp.example.com"}}})
	for part, want := range map[string]string{
		`{}`:                               "servers: must name 1 to 64",
		`{"servers":{"a_b":{}}}`:           "servers.a_b: the name must be",
		`{"servers":{"a":{}}}`:             "servers.a.command: is missing",
		`{"servers":{"a":{"command":[]}}}`: "servers.a.command: must be a program",
		`{"servers":{"a":{"command":["x"],"url":"https://x"}}}`:                                                                                   "servers.a.url: command is set too",
		`{"servers":{"a":{"command":["x"],"env":{"A=B":"c"}}}}`:                                                                                   "servers.a.env.A=B: is not the name",
		`{"servers":{"a":{"command":["x"],"secrets":{"A":"nope"}}}}`:                                                                              "servers.a.secrets.A: is not the name of a credential; known: tracker",
		`{"servers":{"a":{"command":["x"],"credential":"tracker"}}}`:                                                                              "servers.a.credential: is for a url",
		`{"servers":{"a":{"command":["x"],"effects":{"b":"never"}}}}`:                                                                             "servers.a.effects.b: must be read",
		`{"servers":{"a":{"command":["x"],"timeout":"1ms"}}}`:                                                                                     "servers.a.timeout: must be 1s",
		`{"servers":{"a":{"command":["x"],"bytes":1}}}`:                                                                                           "servers.a.bytes: must be",
		`{"servers":{"a":{"url":"ftp://x"}}}`:                                                                                                     "servers.a.url: must be an address",
		`{"servers":{"a":{"url":"https://u:p@x"}}}`:                                                                                               "servers.a.url: must be an address",
		`{"servers":{"a":{"url":"https://x","dir":"y"}}}`:                                                                                         "servers.a.dir: is for a command",
		`{"servers":{"a":{"url":"https://other.example.com","credential":"tracker"}}}`:                                                            "servers.a.credential: \"tracker\": the credential is not for this host",
		`{"servers":{"a":{"url":"http://mcp.example.com","credential":"tracker"}}}`:                                                               "it is sent over https alone",
		`{"servers":{"a":{"url":"https://x","oauth":{"tokenUrl":"x","clientId":"c","credential":"t"}}}}`:                                          "servers.a.oauth.tokenUrl: must be",
		`{"servers":{"a":{"url":"https://x","oauth":{"tokenUrl":"https://y","clientId":"","credential":""}}}}`:                                    "servers.a.oauth.clientId: is missing",
		`{"servers":{"a":{"url":"https://x","oauth":{"tokenUrl":"https://y","clientId":"c","credential":"tracker"}}}}`:                            "servers.a.oauth.credential: \"tracker\": the credential is not for this host",
		`{"servers":{"a":{"url":"http://mcp.example.com","oauth":{"tokenUrl":"https://mcp.example.com","clientId":"c","credential":"tracker"}}}}`: "servers.a.url: must begin with https://",
		`{"servers":{"a":{"command":["x"],"cwd":"y"}}}`:                                                                                           "servers.a.cwd: ",
	} {
		_, err := mcp.ParseConfig([]byte(part), d.Credentials)
		if fe, ok := errors.AsType[*messages.FieldError](err); !ok || !strings.Contains(fe.Error(), want) {
			t.Errorf("%s: %v, want %s", part, err, want)
		}
	}
	s := stdio(t, "sdk")
	for want, change := range map[string]func(*mcp.Server){
		"servers.s.tools: none is in the lock file: run `longshore tools pin s`": func(*mcp.Server) {},
		`servers.s.tools[0]: "echo" is not in the lock file`:                     func(s *mcp.Server) { s.Tools = []string{"echo"} },
		"servers.s.effects.echo: is none of the tools that are offered": func(s *mcp.Server) {
			s.Effects, s.Prompts = map[string]messages.Effect{"echo": messages.EffectRead}, true
		},
	} {
		s := s
		change(&s)
		_, err := mcp.Open(t.Context(), checked(t, map[string]mcp.Server{"s": s}, d), &mcp.Lock{}, d)
		if fe, ok := errors.AsType[*messages.FieldError](err); !ok || !strings.Contains(fe.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
