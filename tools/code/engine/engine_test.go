package engine_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/tools/code/engine"
)

func TestMain(m *testing.M) {
	if code := engine.Main(os.Args, os.Stdin, os.Stdout, os.Stderr); code >= 0 {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// ran is what came of a program.
type ran struct {
	out, err string
	code     int
	took     time.Duration
}

// run runs a program in a process of its own, as tools do, but not confined.
func run(t *testing.T, dir string, p engine.Program) ran {
	t.Helper()
	if p.Time == 0 {
		p.Time = 20 * time.Second
	}
	if p.Memory == 0 {
		p.Memory = 64 << 20
	}
	in, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, engine.Arg)
	var out, told bytes.Buffer
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = dir, bytes.NewReader(in), &out, &told, []string{"GORACE=halt_on_error=1"}
	began := time.Now()
	err = cmd.Run()
	r := ran{out: out.String(), err: told.String(), took: time.Since(began)}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		r.code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPrograms(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code     string
		out, err string // beginnings
		exit     int
	}{
		"console":           {`console.log("a", 1, {b: [2]}, null, undefined); console.error(new TypeError("no"))`, "a 1 {\"b\":[2]} null undefined\n", "TypeError: no\n", 0},
		"cyclic":            {`const a = {}; a.a = a; console.log(a)`, "[object Object]\n", "", 0},
		"await":             {`const v = await Promise.resolve(7); console.log(v)`, "7\n", "", 0},
		"later":             {`Promise.resolve(1).then((v) => console.log(v)); console.log(0)`, "0\n1\n", "", 0},
		"thrown":            {"\nnull.x", "", "TypeError: cannot read property 'x' of null\n    at ", 1},
		"thrown later":      {`await null; throw new Error("late")`, "", "Error: late\n", 1},
		"thrown text":       {`throw "text"`, "", "text", 1},
		"syntax":            {`let = ;`, "", "SyntaxError: ", 1},
		"never settled":     {`await new Promise(() => {})`, "", "the program waits for a promise that is never settled\n", 1},
		"strict":            {`x = 1`, "", "ReferenceError: ", 1},
		"empty":             {``, "", "", 0},
		"no such module":    {`import "left-pad"`, "", "", 1},
		"not the system":    {`console.log(typeof std, typeof os, typeof process, typeof require, typeof fetch, typeof Deno, typeof __write, typeof scriptArgs)`, strings.TrimSuffix(strings.Repeat("undefined ", 8), " ") + "\n", "", 0},
		"a module of std":   {`import * as std from "std"; console.log(std)`, "", "", 1},
		"output is ordered": {`console.log("a"); console.error("b"); throw "c"`, "a\n", "b\nc", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t, t.TempDir(), engine.Program{Code: tc.code})
			if r.code != tc.exit || r.out != tc.out || !strings.HasPrefix(r.err, tc.err) || tc.exit == 0 && tc.err == "" && r.err != "" || tc.exit != 0 && r.err == "" {
				t.Errorf("exit code %d, out %q, err %q", r.code, r.out, r.err)
			}
		})
	}
}

// Attack 131: what would take the engine's time, memory or stack, or change what the host gave, ends the program and nothing else.
func TestAttack131(t *testing.T) {
	t.Parallel()
	const thrown, late = 1, 124
	for name, tc := range map[string]struct {
		code string
		exit int
		out  string
		err  string // part of it
	}{
		"infinite loop":        {`for (;;);`, late, "", "stopped: it ran for longer than 500ms"},
		"loop that catches":    {`for (;;) { try { for (;;); } catch {} }`, late, "", "stopped: "},
		"loop of promises":     {`const again = () => Promise.resolve().then(again); await again()`, late, "", "stopped: "},
		"loop after await":     {`await null; for (;;);`, late, "", "stopped: "},
		"regular expression":   {`/^(a+)+$/.test("a".repeat(64) + "b")`, late, "", "stopped: "},
		"back-references":      {`/^(a*)*\1$/.test("a".repeat(64) + "b")`, late, "", "stopped: "},
		"1 GiB array":          {`new Uint8Array(1 << 30)`, thrown, "", "out of memory"},
		"growing array":        {`const a = []; for (;;) a.push(new Array(1000).fill(0))`, thrown, "", "out of memory"},
		"growing text":         {`let s = "x"; for (;;) { s += s; JSON.stringify(s) }`, thrown, "", ""},
		"deep recursion":       {`const f = () => f() + 1; f()`, thrown, "", "stack"},
		"deep JSON":            {`JSON.parse("[".repeat(1e6))`, thrown, "", ""},
		"deep expression":      {`eval("(".repeat(1e6))`, thrown, "", ""},
		"eval":                 {`console.log(eval("1 + 1"), typeof eval("this && this.__write"))`, 0, "2 undefined\n", ""},
		"Function":             {`console.log(new Function("return typeof __read + typeof process")(), [].constructor.constructor("return typeof std")())`, 0, "undefinedundefined undefined\n", ""},
		"pollution":            {`Object.prototype.polluted = 1; Array.prototype.map = null; String.prototype.trimEnd = null; JSON.stringify = () => "no"; console.log("still")`, thrown, "", ""},
		"replaced console":     {`console.log = 1`, thrown, "", "read-only"},
		"replaced readFile":    {`globalThis.readFile = 1`, thrown, "", "read-only"},
		"deleted readFile":     {`delete globalThis.readFile`, thrown, "", ""},
		"a path with a setter": {`readFile({ toString() { return "../secret" } })`, thrown, "", "escapes"},
		"a proxy as a path":    {`readFile(new Proxy({}, { get: () => () => "/etc/passwd" }))`, thrown, "", "escapes"},
		"symbols":              {`writeFile("a", Symbol("x"))`, 0, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := engine.Program{Code: tc.code, Memory: 32 << 20}
			if tc.exit == late {
				p.Time = 500 * time.Millisecond
			}
			r := run(t, t.TempDir(), p)
			if r.code != tc.exit || r.out != tc.out || !strings.Contains(r.err, tc.err) || r.took > 15*time.Second {
				t.Errorf("exit code %d after %v, out %q, err %.300q", r.code, r.took, r.out, r.err)
			}
		})
	}
}

// A program reads and writes the files of its folder, and no others.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret")
	for file, text := range map[string]string{outside: "secret", filepath.Join(dir, "a.txt"): "héllo"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	r := run(t, dir, engine.Program{Code: `
		writeFile("deep/er/b.txt", readFile("a.txt").toUpperCase());
		console.log(readFile("deep/er/b.txt"), listFiles(), listFiles("deep"));
		for (const path of ["../x", "` + outside + `", "link", "deep", "", "nothing", "/proc/self/environ"]) {
			try { console.log("read", path, readFile(path)) } catch (e) { console.log(e.message) }
		}`})
	if r.code != 0 || !strings.HasPrefix(r.out, `HÉLLO ["a.txt","deep/","link"] ["er/"]`+"\n") || strings.Contains(r.out, "read") || strings.Contains(r.out, "secret\n") {
		t.Errorf("exit code %d, out %q, err %q", r.code, r.out, r.err)
	}
	if lines := strings.Split(strings.TrimSpace(r.out), "\n"); len(lines) != 8 || lines[6] != "nothing: no such file or directory" || lines[4] != "deep: is not a file" {
		t.Errorf("out %q", lines)
	}
}

// Files of the workspace are imported by their paths, packages by their names, and nothing else is.
func TestModules(t *testing.T) {
	t.Parallel()
	dir, packages := t.TempDir(), t.TempDir()
	for file, text := range map[string]string{
		filepath.Join(dir, "lib/a.js"):            `import { b } from "./b.js"; export const a = b + 1`,
		filepath.Join(dir, "lib/b.js"):            `export const b = 1`,
		filepath.Join(packages, "left/index.js"):  `import { pad } from "./pad"; export default (s) => pad(s)`,
		filepath.Join(packages, "left/pad.js"):    `export const pad = (s) => " " + s`,
		filepath.Join(packages, "greedy.js"):      `export { default } from "../secret.js"`,
		filepath.Join(packages, "../secret.js"):   `export default 1`,
		filepath.Join(packages, "workspace/x.js"): `export default 1`,
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := run(t, dir, engine.Program{Packages: packages, Code: `
		import { a } from "./lib/a.js";
		import pad from "left";
		console.log(a, pad("x"), (await import("./lib/b.js")).b);
		for (const name of ["greedy", "../secret.js", "` + packages + `/left/pad.js", "std", "os", "workspace/lib/a.js", ""]) {
			try { await import(name); console.log("imported", name) } catch (e) { console.log(String(e)) }
		}`})
	if r.code != 0 || !strings.HasPrefix(r.out, "2  x 1\n") || strings.Contains(r.out, "imported") || strings.Count(r.out, "there is no such file") != 7 {
		t.Errorf("exit code %d, out %q, err %q", r.code, r.out, r.err)
	}
}

// Other arguments are none of the engine's.
func TestOtherArguments(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"longshore"}, {"longshore", "run"}, {"longshore", engine.Arg, "x"}, {engine.Arg}} {
		if code := engine.Main(args, nil, nil, nil); code != -1 {
			t.Errorf("%q: %d", args, code)
		}
	}
	var told bytes.Buffer
	if code := engine.Main([]string{"longshore", engine.Arg}, strings.NewReader("{"), nil, &told); code != 125 || told.Len() == 0 {
		t.Errorf("%d: %s", code, &told)
	}
}
