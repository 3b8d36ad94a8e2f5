//go:build linux && (amd64 || arm64)

package command_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/sandbox/process"
	"github.com/longshore-run/longshore/sandbox/process/processtest"
	"github.com/longshore-run/longshore/tools/confined"
	"github.com/longshore-run/longshore/worker/hooks/command"
)

const unprivileged = 65534

// modes runs a test in both modes that confine programs; root has only namespaces, and runs the tests again as another user.
func modes(t *testing.T, test func(t *testing.T, run process.Runner, mode string)) {
	t.Helper()
	for mode, cfg := range map[string]process.Config{"namespaces": {Require: process.LayerNamespaces}, "landlock": {NoNamespaces: true}} {
		if mode == "landlock" && os.Geteuid() == 0 {
			continue // TestInBothModesAsAnotherUser
		}
		t.Run(mode, func(t *testing.T) {
			run, err := process.New(t.Context(), cfg)
			if errors.Is(err, process.ErrUnavailable) {
				t.Skip("left out: ", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			test(t, run, mode)
		})
	}
}

// bothModes are the tests that run in both.
const bothModes = "^(TestAnswers|TestCommandsAreConfined|TestAttacksByCommands)$"

// As root, the tests of both modes run again as a user without any privilege.
func TestInBothModesAsAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		return // they run as such a user anyway
	}
	dir := t.TempDir()
	open(t, dir)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	file := processtest.Copy(t, dir, "command.test")
	cmd := exec.CommandContext(t.Context(), file, "-test.run="+bothModes, "-test.v")
	cmd.Env = []string{"TMPDIR=" + dir, "PATH=" + os.Getenv("PATH"), "GORACE=" + os.Getenv("GORACE")}
	cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
	out, err := cmd.CombinedOutput()
	ended := string(out)
	for name := range strings.SplitSeq(strings.Trim(bothModes, "^()$"), "|") {
		for _, mode := range []string{"namespaces", "landlock"} {
			if strings.Contains(ended, "--- SKIP: "+name+"/"+mode) {
				t.Log("left out: ", name, " in ", mode, " as another user")
			} else if !strings.Contains(ended, "--- PASS: "+name+"/"+mode) {
				err = errors.Join(err, fmt.Errorf("%s did not pass in the mode %s", name, mode))
			}
		}
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// open makes a folder of the test one that every user may enter.
func open(t *testing.T, dir string) {
	t.Helper()
	for ; dir != os.TempDir() && len(dir) > 1; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// A command that was replaced by one that attacks, or that a call deceives, gets no further than any program in the sandbox. Each
// script exits with 2 if it came through, and a reason on standard error.
func TestAttacksByCommands(t *testing.T) {
	modes(t, func(t *testing.T, run process.Runner, mode string) {
		own := t.TempDir() // what the operator lets the command read: its own folder
		open(t, own)
		if err := os.WriteFile(filepath.Join(own, "hook.sh"), []byte("exit 0\n"), 0o777); err != nil {
			t.Fatal(err)
		}
		site, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer site.Close()
		_, port, _ := net.SplitHostPort(site.Addr().String())
		worker, token := strconv.Itoa(os.Getpid()), "token-"+rand.Text()
		for name, tt := range map[string]struct{ script, err string }{
			"arguments of the call":      {script: `[ $# = 0 ] && [ "$0" = sh ] || exit 2`},
			"environment of the worker":  {script: `cat /proc/` + worker + `/environ >/dev/null 2>&1 && exit 2; cat /proc/$PPID/environ 2>/dev/null | tr '\0' '\n' | grep -q ^HOOK_ATTACK= && exit 2; exit 0`},
			"memory of the worker":       {script: `head -c 1 /proc/` + worker + `/mem >/dev/null 2>&1 && exit 2; ls /proc/` + worker + `/fd >/dev/null 2>&1 && exit 2; exit 0`},
			"signal to the worker":       {script: `kill -0 ` + worker + ` 2>/dev/null && exit 2; exit 0`},
			"its own folder":             {script: `for f in ` + own + `/hook.sh ` + own + `/new; do (echo x >>$f) 2>/dev/null && exit 2; done; rm -f ` + own + `/hook.sh 2>/dev/null; [ -e ` + own + `/hook.sh ] || exit 2`},
			"files of the machine":       {script: `for f in /etc /usr /var/tmp /dev/shm /run; do (echo x >$f/longshore-hook) 2>/dev/null && exit 2; done; cat /etc/shadow >/dev/null 2>&1 && exit 2; exit 0`},
			"network":                    {script: `command -v bash >/dev/null || exit 3; bash -c 'exec 3<>/dev/tcp/127.0.0.1/` + port + `' 2>/dev/null && exit 2; exit 0`},
			"network over UDP":           {script: `command -v bash >/dev/null || exit 3; bash -c 'exec 3<>/dev/udp/127.0.0.1/` + port + `' 2>/dev/null && exit 2; exit 0`},
			"processes that stay":        {script: `i=0; while [ $i -lt 20 ]; do sh -c 'trap "" TERM HUP; while :; do sleep 1; done' ` + token + ` & i=$((i+1)); done; setsid sleep 300 ` + token + ` 2>/dev/null & exit 0`},
			"a child holds the output":   {script: `sleep 300 & exit 0`},
			"input that is never read":   {script: `exec 0<&-; exit 0`},
			"flood of standard output":   {script: `yes`, err: "wrote more output than it may"},
			"flood of standard error":    {script: `yes >&2`, err: "wrote more output than it may"},
			"line that does not end":     {script: `cat /dev/zero`, err: "wrote more output than it may"},
			"a large file":               {script: `head -c 100000000 /dev/zero >"$TMPDIR/large"`, err: "File size limit exceeded"},
			"answer in another encoding": {script: `printf '{"decision":"deny\377"}'`, err: "is not valid"},
			"two answers":                {script: `echo '{"decision":"allow"}{"decision":"deny"}'`, err: "is not valid"},
			"answer with a field twice":  {script: `echo '{"decision":"deny","decision":"allow"}'`, err: "is not valid"},
		} {
			t.Run(name, func(t *testing.T) {
				got, err := attackBy(t, run, own, tt.script)
				switch {
				case tt.err == "" && err != nil, tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
					t.Errorf("error %v, want %q", err, tt.err)
				case got.Denies():
					t.Errorf("it came through in the mode %s: %s", mode, got.Reason)
				}
				if left := withToken(token); len(left) > 0 {
					t.Errorf("still running: %v", left)
				}
			})
		}
		t.Run("files of the run", func(t *testing.T) {
			if got, err := attackBy(t, run, "/usr/bin", `[ -z "$(ls -A .)" ] || exit 2`); err != nil || got.Denies() {
				t.Errorf("%+v, %v", got, err)
			}
		})
		t.Run("all of its environment", func(t *testing.T) {
			t.Setenv("HOOK_ATTACK", "s3cret-of-the-worker")
			got, err := attackBy(t, run, own, `env >&2; exit 2`)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for line := range strings.Lines(got.Reason) {
				if name, _, ok := strings.Cut(line, "="); ok {
					names = append(names, name)
				}
			}
			slices.Sort(names)
			if want := []string{"HOME", "LANG", "LONGSHORE_HOOK_POINT", "PATH", "PWD", "TMPDIR"}; !slices.Equal(slices.DeleteFunc(names, func(s string) bool { return s == "_" || s == "SHLVL" || s == "OLDPWD" }), want) {
				t.Errorf("%v, want %v", names, want)
			}
		})
		t.Run("the worker stays small", func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for range 5 {
				if _, err := attackBy(t, run, own, `cat /dev/zero`); err == nil {
					t.Error("a flood is an answer")
				}
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
				t.Errorf("it grew by %d bytes", grown)
			}
		})
		if text, err := os.ReadFile(filepath.Join(own, "hook.sh")); err != nil || string(text) != "exit 0\n" {
			t.Errorf("the command's own file is %q, %v", text, err)
		}
		if left, err := filepath.Glob("/*/longshore-hook"); err != nil || len(left) > 0 {
			t.Errorf("written outside: %v, %v", left, err)
		}
	})
}

// attackBy calls a script as a hook, with a call that is large and full of what a shell would read.
func attackBy(t *testing.T, run process.Runner, folder, script string) (messages.HookAnswer, error) {
	t.Helper()
	h, err := command.New(command.Config{Commands: map[string]command.Command{
		"it": {Config: confined.Config{Folders: []string{folder}}, Argv: []string{"sh", "-c", script}},
	}}, run)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	f, err := h.Hook(messages.Hook{On: messages.HookPreTool, Command: "it"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // a defect takes longer: 300 s
	defer cancel()
	return f(ctx, messages.HookCall{
		ID: "t.r.1.pre_tool.c1", On: messages.HookPreTool, Tenant: "t", Run: "$(exit 2)", Input: strings.Repeat("`exit 2`; ", 200_000),
		Tool: &messages.ToolCall{ID: "c1", Name: "; exit 2", Arguments: `{"x":"$(kill -9 0)\n-rf"}`},
	})
}

// withToken are the processes that have it in their arguments.
func withToken(token string) (pids []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), token) {
			pids = append(pids, strings.Split(path, "/")[2])
		}
	}
	return pids
}
