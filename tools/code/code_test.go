package code_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/sandbox/process"
	"github.com/longshore-run/longshore/sandbox/process/processtest"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/code"
	"github.com/longshore-run/longshore/tools/code/engine"
	"github.com/longshore-run/longshore/tools/toolstest"
)

func TestMain(m *testing.M) {
	process.Init()
	if code := engine.Main(os.Args, os.Stdin, os.Stdout, os.Stderr); code >= 0 {
		os.Exit(code)
	}
	goleak.VerifyTestMain(m)
}

// landlockVariable has programs confined without namespaces.
const landlockVariable = "LONGSHORE_TEST_LANDLOCK"

// native is the runner of the tests, made once: it tries what this machine can enforce. A machine without it fails them.
var native = sync.OnceValues(func() (*process.Native, error) {
	cfg := process.Config{Parallel: 4, NoNamespaces: os.Getenv(landlockVariable) != ""}
	return process.New(context.Background(), cfg)
})

// executable is a copy of the test's program that every user may read.
func executable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	readable(t, dir)
	return processtest.Copy(t, dir, "code.test")
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

func tool(t *testing.T, cfg code.Config) tools.Tool {
	t.Helper()
	run, err := native()
	if err != nil {
		t.Fatal(err)
	}
	made, err := code.Tool(cfg, run, executable(t))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// both grants both languages.
func both() code.Config { return code.Config{Python: "/usr/bin/python3"} }

// bench makes calls in one workspace.
type bench struct {
	t    *testing.T
	set  *tools.Set
	spec []messages.ToolSpec
	ws   *sandbox.Workspace
	call tools.Call
}

func newBench(t *testing.T, cfg code.Config) *bench {
	t.Helper()
	set, err := tools.NewSet(tool(t, cfg))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := set.Specs([]string{"run_code"})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, set: set, spec: spec}
	if b.ws, err = sandbox.Open(filepath.Join(t.TempDir(), "ws"), sandbox.Limits{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.ws.Close() })
	return b
}

func (b *bench) do(language, text string, more ...any) (string, tools.Result) {
	b.t.Helper()
	args := map[string]any{"language": language, "code": text}
	if len(more) > 0 {
		args["seconds"] = more[0]
	}
	raw, err := json.Marshal(args)
	if err != nil {
		b.t.Fatal(err)
	}
	var r tools.Result
	checked, refusal := b.set.Check(messages.ToolCall{Name: "run_code", Arguments: string(raw)}, b.spec)
	if refusal != nil {
		r = *refusal
	} else {
		c := b.call
		c.Run, c.ID, c.Key, c.Arguments, c.Workspace = messages.Ref{Tenant: "t", Run: "r"}, "c1", "r.1.c1", checked, b.ws
		if r, err = b.set.Call(b.t.Context(), "run_code", c); err != nil {
			b.t.Fatal(err)
		}
	}
	m := messages.Message{Content: r.Content}
	return m.Text(), r
}

func TestConformance(t *testing.T) {
	t.Parallel()
	toolstest.Run(t, tool(t, both()),
		toolstest.Case{Arguments: `{"language":"javascript","code":"console.log(readFile('a.txt'))"}`, Files: map[string]string{"a.txt": "text"}},
		toolstest.Case{Arguments: `{"language":"javascript","code":"for(;;);","seconds":1}`, Fails: true},
		toolstest.Case{Arguments: `{"language":"python","code":"import sys; sys.stdout.buffer.write(b'\\xff')"}`},
	)
}

func TestPrograms(t *testing.T) {
	t.Parallel()
	b := newBench(t, both())
	if err := b.ws.Write("numbers.txt", []byte("1\n2\n3\n")); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		language, code string
		want           string // beginning
		isError        bool
	}{
		"JavaScript":     {"javascript", `console.log(readFile("numbers.txt").trim().split("\n").reduce((a, b) => a + Number(b), 0)); writeFile("sum.txt", "6")`, "exit code 0\nstdout:\n6", false},
		"Python":         {"python", `print(sum(int(l) for l in open("numbers.txt")))`, "exit code 0\nstdout:\n6", false},
		"thrown":         {"javascript", `console.log("a"); throw new Error("no")`, "exit code 1\nstdout:\na\nstderr:\nError: no\n", true},
		"raised":         {"python", `raise ValueError("no")`, "exit code 1\nstderr:\nTraceback ", true},
		"another":        {"ruby", `puts 1`, "Invalid arguments", true},
		"no network":     {"python", `import socket; socket.create_connection(("127.0.0.1", 1), 1)`, "exit code 1\nstderr:\nTraceback ", true},
		"not installed":  {"python", `import numpy_that_is_not_here`, "exit code 1\nstderr:\nTraceback ", true},
		"no environment": {"python", `import os; print(sorted(os.environ))`, "exit code 0\nstdout:\n['HOME', 'LANG', 'PATH', 'PYTHONDONTWRITEBYTECODE', 'PYTHONIOENCODING', 'PYTHONNOUSERSITE', 'PYTHONUNBUFFERED', 'TMPDIR']", false},
		"a long program": {"javascript", strings.Repeat(" ", 300<<10), `Invalid arguments: "code" is longer`, true},
		"much of it":     {"javascript", `console.log(1);` + strings.Repeat(" ", 200<<10), "exit code 0\nstdout:\n1", false},
		"seconds":        {"javascript", `console.log(1)`, "exit code 0\nstdout:\n1", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, r := b.do(tc.language, tc.code)
			if !strings.HasPrefix(text, tc.want) || r.IsError != tc.isError {
				t.Errorf("got %.300q, error %v", text, r.IsError)
			}
		})
	}
	only := newBench(t, code.Config{})
	if text, r := only.do("python", "print(1)"); r.Code != messages.CodeInvalidInput || strings.Contains(only.spec[0].Description, "Python") {
		t.Errorf("without an interpreter: %s", text)
	}
}

// Attack 131: programs that would take time, memory or stack are stopped, in both languages; one call leaves nothing to the next.
func TestAttack131(t *testing.T) {
	t.Parallel()
	cfg := both()
	cfg.Limits.Memory = 128 << 20
	b := newBench(t, cfg)
	for name, tc := range map[string]struct {
		language, code string
		want           string
	}{
		"infinite loop":          {"javascript", `for (;;);`, "stopped: it ran for longer than 1s"},
		"infinite loop, Python":  {"python", `while True: pass`, "stopped: it ran for longer than 1s"},
		"regular expression":     {"javascript", `/^(a+)+$/.test("a".repeat(64) + "b")`, "stopped: it ran for longer than 1s"},
		"back-references":        {"javascript", `/^(a*)*\1$/.test("a".repeat(64) + "b")`, "stopped: it ran for longer than 1s"},
		"1 GiB array":            {"javascript", `new Uint8Array(1 << 30)`, "out of memory: it may use 128 MiB"},
		"1 GiB, Python":          {"python", `bytearray(1 << 30)`, "MemoryError"},
		"deep recursion":         {"javascript", `const f = () => f() + 1; f()`, "stack"},
		"deep recursion, Python": {"python", `f = lambda: f() + 1; f()`, "RecursionError"},
		"endless output":         {"javascript", `for (;;) console.log("x".repeat(1000))`, "stopped: it "},
		"eval and Function":      {"javascript", `throw eval("1") + new Function("return typeof process + typeof __write")()`, "1undefinedundefined"},
		"a replaced host object": {"javascript", `console.log = null`, "read-only"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			text, r := b.do(tc.language, tc.code, 1)
			if !r.IsError || !strings.Contains(text, tc.want) || time.Since(began) > 25*time.Second {
				t.Errorf("after %v %.500s", time.Since(began), text)
			}
		})
	}
	if text, _ := b.do("javascript", `Object.prototype.polluted = 1; Array.prototype.join = () => "no"; globalThis.kept = 1; console.log(({}).polluted)`); !strings.Contains(text, "stdout:\nno") && !strings.Contains(text, "stdout:\n1") {
		t.Errorf("pollution: %s", text)
	}
	if text, _ := b.do("javascript", `console.log(typeof ({}).polluted, typeof kept, [1, 2].join())`); text != "exit code 0\nstdout:\nundefined undefined 1,2" {
		t.Errorf("the next call sees it: %s", text)
	}
}

// Attack 132: a script in the workspace runs in the same sandbox as the program that imports it, and reaches no more.
func TestAttack132Scripts(t *testing.T) {
	t.Parallel()
	b := newBench(t, both())
	for name, text := range map[string]string{
		"evil.js": `let seen = []; for (const p of ["../x", "/etc/passwd", "/proc/self/environ"]) { try { seen.push(readFile(p)) } catch {} }; export default seen.length + typeof process`,
		"evil.py": "import os, socket\nseen = 0\nfor what in (lambda: open('/etc/shadow'), lambda: os.listdir('/root'), lambda: socket.create_connection(('1.1.1.1', 53), 1)):\n" +
			"\ttry:\n\t\twhat(); seen += 1\n\texcept OSError: pass\n",
	} {
		if err := b.ws.Write(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if text, _ := b.do("javascript", `import seen from "./evil.js"; console.log(seen)`); text != "exit code 0\nstdout:\n0undefined" {
		t.Error(text)
	}
	if text, _ := b.do("python", `import evil; print(evil.seen)`); text != "exit code 0\nstdout:\n0" {
		t.Error(text)
	}
}

// Packages come from the operator's folders, which programs cannot change.
func TestPackages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	readable(t, dir)
	for name, text := range map[string]string{"left.js": `export default "js"`, "left.py": `name = "py"`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cfg := both()
	cfg.Packages = map[string]string{"javascript": dir, "python": dir}
	b := newBench(t, cfg)
	if text, _ := b.do("javascript", `import left from "left"; console.log(left)`); text != "exit code 0\nstdout:\njs" {
		t.Error(text)
	}
	if text, _ := b.do("python", "import left\nprint(left.name)\nopen('"+dir+"/left.py', 'w')"); !strings.HasPrefix(text, "exit code 1\nstdout:\npy\nstderr:\n") {
		t.Error(text)
	}
}

// The time that an agent gives its calls ends a program as its own does, and what it wrote is told.
func TestTimeOfTheAgent(t *testing.T) {
	t.Parallel()
	b := newBench(t, both())
	b.call.Timeout = 4 * time.Second // half of it is to start the program
	text, r := b.do("javascript", `console.log("begun"); for (;;);`)
	if !r.IsError || !strings.HasPrefix(text, "exit code 124\nstdout:\nbegun\nstderr:\nstopped: it ran for longer than 2s") {
		t.Error(text)
	}
}

func TestConfigurations(t *testing.T) {
	t.Parallel()
	run, err := native()
	if err != nil {
		t.Fatal(err)
	}
	for part, field := range map[string]string{
		`{"ruby":"/usr/bin/ruby"}`:           "ruby",
		`{"python":"python3"}`:               "python",
		`{"packages":{"python":"/srv/py"}}`:  "packages.python",
		`{"packages":{"javascript":"./js"}}`: "packages.javascript",
		`{"limits":{"time":"0.5s"}}`:         "limits.time",
		`{"folders":["srv"]}`:                "folders[0]",
	} {
		cfg, err := code.ParseConfig([]byte(part))
		if err == nil {
			_, err = code.Tool(cfg, run, "/bin/true")
		}
		if fe, ok := errors.AsType[*messages.FieldError](err); !ok || fe.Field != field {
			t.Errorf("%s: %v", part, err)
		}
	}
}
