//go:build linux && (amd64 || arm64)

package command_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/sandbox/process"
	"github.com/longshore-run/longshore/worker/agenttest"
	"github.com/longshore-run/longshore/worker/embed"
	"github.com/longshore-run/longshore/worker/hooks/command"
	"github.com/longshore-run/longshore/worker/runner"
)

func TestMain(m *testing.M) {
	process.Init()
	goleak.VerifyTestMain(m)
}

// listed are commands by name, each a script for sh.
func listed(t *testing.T, scripts map[string]string) *command.Hooks {
	t.Helper()
	run, err := process.New(t.Context(), process.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return listedOn(t, run, scripts)
}

func listedOn(t *testing.T, run process.Runner, scripts map[string]string) *command.Hooks {
	t.Helper()
	cfg := command.Config{Commands: map[string]command.Command{}}
	for name, script := range scripts {
		cfg.Commands[name] = command.Command{Argv: []string{"sh", "-c", script}}
	}
	h, err := command.New(cfg, run)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

func call(ctx context.Context, h *command.Hooks, on messages.HookPoint, name string) (messages.HookAnswer, error) {
	f, err := h.Hook(messages.Hook{On: on, Command: name})
	if err != nil {
		return messages.HookAnswer{}, err
	}
	return f(ctx, messages.HookCall{ID: "t.r.1.pre_tool.c1", On: on, Tenant: "t", Run: "r", Tool: &messages.ToolCall{ID: "c1", Name: "write_file"}})
}

func TestAnswers(t *testing.T) {
	modes(t, testAnswers)
}

func testAnswers(t *testing.T, run process.Runner, _ string) {
	for name, tt := range map[string]struct {
		script string
		on     messages.HookPoint
		denied string
		err    string
	}{
		"nothing":         {script: `cat >/dev/null`, on: messages.HookPreTool},
		"input unread":    {script: `exit 0`, on: messages.HookPreTool},
		"allow":           {script: `echo '{"decision":"allow"}'`, on: messages.HookPreTool},
		"deny":            {script: `echo '{"decision":"deny","reason":"no"}'`, on: messages.HookPreTool, denied: "no"},
		"deny by code":    {script: `echo 'not today' >&2; exit 2`, on: messages.HookPreTask, denied: "not today"},
		"reads the call":  {script: `grep -q '"name":"write_file"' && exit 2; exit 0`, on: messages.HookPreTool, denied: "-"},
		"reads the point": {script: `[ "$LONGSHORE_HOOK_POINT" = pre_tool ] && exit 2; exit 0`, on: messages.HookPreTool, denied: "-"},
		"code one":        {script: `echo broken >&2; exit 1`, on: messages.HookPreTool, err: "exit code 1: broken"},
		"code two, told":  {script: `exit 2`, on: messages.HookPostTool, err: "exit code 2"},
		"signal":          {script: `kill -9 $$`, on: messages.HookPreTool, err: "ended by the signal SIGKILL"},
		"not JSON":        {script: `echo yes`, on: messages.HookPreTool, err: "the answer on standard output is not valid"},
		"unknown field":   {script: `echo '{"verdict":"deny"}'`, on: messages.HookPreTool, err: "verdict"},
		"maybe":           {script: `echo '{"decision":"maybe"}'`, on: messages.HookPreTool, err: "decision: must be allow or deny"},
		"large":           {script: `head -c 70000 /dev/zero | tr '\0' ' '`, on: messages.HookPreTool, err: "larger than 65536 bytes"},
		"flood":           {script: `while :; do echo 0123456789012345678901234567890123456789; done`, on: messages.HookPreTool, err: "wrote more output than it may"},
		"told":            {script: `echo yes`, on: messages.HookPostTool},
		"no program":      {script: `exec /nowhere/program`, on: messages.HookPreTool, err: "exit code 127"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			got, err := call(ctx, listedOn(t, run, map[string]string{"it": tt.script}), tt.on, "it")
			switch {
			case tt.err == "" && err != nil, tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
				t.Errorf("error %v, want %q", err, tt.err)
			case got.Denies() != (tt.denied != ""), len(tt.denied) > 1 && got.Reason != tt.denied:
				t.Errorf("answer %+v", got)
			}
		})
	}
}

// A command sees nothing of the worker: no variable, no file, no network; and it ends with its hook.
func TestCommandsAreConfined(t *testing.T) {
	modes(t, testConfined)
}

func testConfined(t *testing.T, run process.Runner, _ string) {
	t.Setenv("LONGSHORE_TEST_SECRET", "s3cret-of-the-worker")
	outside := t.TempDir() + "/outside"
	if err := os.WriteFile(outside, []byte("s3cret-of-the-worker"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := listedOn(t, run, map[string]string{
		"env":     `env | grep -q s3cret && exit 2; exit 0`,
		"file":    `cat ` + outside + ` >/dev/null 2>&1 && exit 2; exit 0`,
		"network": `perl -MSocket -e 'socket(my $s, PF_INET, SOCK_STREAM, 0) ? exit 2 : exit 0'`,
		"forever": `trap '' TERM; while :; do :; done`,
	})
	for _, name := range []string{"env", "file", "network"} {
		if got, err := call(t.Context(), h, messages.HookPreTool, name); err != nil || got.Denies() {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	late := errors.New("the hook's time is up")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, late)
	defer cancel()
	if _, err := call(ctx, h, messages.HookPreTool, "forever"); !errors.Is(err, late) {
		t.Errorf("error %v", err)
	}
}

// Only commands of the list run, and none after Close.
func TestCommandsAreTheOperators(t *testing.T) {
	t.Parallel()
	h := listed(t, map[string]string{"it": "exit 0"})
	for name, want := range map[string]string{"other": "the command other is not one that the operator listed", "/bin/sh": "is not one that the operator listed"} {
		if _, err := call(t.Context(), h, messages.HookPreTool, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := call(t.Context(), nil, messages.HookPreTool, "it"); err == nil || !strings.Contains(err.Error(), "command hooks are off") {
		t.Errorf("without a list: %v", err)
	}
	h.Close()
	if _, err := call(t.Context(), h, messages.HookPreTool, "it"); err == nil || !strings.Contains(err.Error(), "shutting down") {
		t.Errorf("after Close: %v", err)
	}
}

func TestListsThatAreWrong(t *testing.T) {
	t.Parallel()
	for part, want := range map[string]string{
		`{}`:                                        "commands: must name 1 to 64 commands",
		`{"commands":{"A":{"argv":["a"]}}}`:         "commands.A: the name must be",
		`{"commands":{"a":{}}}`:                     "commands.a.argv: must be a program",
		`{"commands":{"a":{"argv":["bin/a"]}}}`:     "commands.a.argv[0]: must be a name or a whole path",
		`{"commands":{"a":{"argv":["/opt/../a"]}}}`: "commands.a.argv[0]: must be a name or a whole path",
		`{"commands":{"a":{"argv":["a"],"limits":{"memory":1}}}}`:               "commands.a.limits.memory: ",
		`{"commands":{"a":{"argv":["a"],"folders":["/"]}}}`:                     "commands.a.folders[0]: ",
		`{"commands":{"a":{"argv":["a"],"shell":true}}}`:                        "commands.a.shell: ",
		`{"commands":{"a":{"argv":["a"],"require":["locks"]}}}`:                 "commands.a.require: ",
		`{"commands":{"a":{"argv":["a","` + strings.Repeat("x", 5000) + `"]}}}`: "commands.a.argv[1]: ",
	} {
		cfg, err := command.ParseConfig([]byte(part))
		if err == nil {
			_, err = command.New(cfg, lacking{})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", part, err, want)
		}
	}
}

// lacking is a machine that confines nothing.
type lacking struct{}

func (lacking) Layers() process.Layers { return 0 }

func (lacking) Run(context.Context, process.Command) (process.Result, error) {
	return process.Result{}, errors.New("ran")
}

func (lacking) Ready() error {
	return &process.UnavailableError{Missing: process.LayerLandlock, Reasons: []string{"no such kernel"}}
}

// Where programs cannot be confined a hook fails by its policy, never runs, and the worker is not ready.
func TestWithoutTheSandbox(t *testing.T) {
	t.Parallel()
	h, err := command.New(command.Config{Commands: map[string]command.Command{"it": {Argv: []string{"true"}}}}, lacking{})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Ready(); !errors.Is(err, process.ErrUnavailable) || !strings.HasPrefix(err.Error(), "hook command it: ") {
		t.Errorf("ready: %v", err)
	}
	for on, want := range map[messages.HookPoint][]string{
		messages.HookPreTask: {"hook pre_task failed", "failed: policy"}, messages.HookPostTask: {"model", "hook post_task failed", "completed"},
	} {
		run := ran(t, h, messages.Hook{On: on, Command: "it"})
		run.Want(t, want...)
		if !strings.Contains(run.JSON(), "without landlock (no such kernel)") || !strings.Contains(run.JSON(), "command it") {
			t.Errorf("events\n%s", run.JSON())
		}
	}
}

func ran(t *testing.T, h *command.Hooks, hooks ...messages.Hook) *agenttest.Record {
	t.Helper()
	return agenttest.Run(t, agenttest.Config{Config: embed.Config{
		Model: agenttest.Replies(agenttest.Text("done")), Agent: messages.Definition{Hooks: hooks},
		AgentHook: func(h2 messages.Hook) (runner.HookFunc, error) { return h.Hook(h2) },
	}}, "Hello")
}

// Whole runs: a command refuses a task, one that fails fails it, one that is not listed is refused before anything is paid.
func TestRunsWithCommandHooks(t *testing.T) {
	t.Parallel()
	h := listed(t, map[string]string{
		"closed": `echo 'we are closed' >&2; exit 2`,
		"broken": `exit 3`,
		"slow":   `while :; do :; done`,
		"fine":   `cat`,
	})
	pre := func(name string) messages.Hook {
		return messages.Hook{On: messages.HookPreTask, Command: name, Timeout: messages.Duration(10 * time.Second)}
	}
	for name, tt := range map[string]struct {
		hook messages.Hook
		want []string
		text string
	}{
		"refused":     {pre("closed"), []string{"failed: policy"}, "Refused by a hook: we are closed"},
		"failed":      {pre("broken"), []string{"hook pre_task failed", "failed: policy"}, "exit code 3"},
		"late":        {messages.Hook{On: messages.HookPreTask, Command: "slow", Timeout: messages.Duration(100 * time.Millisecond)}, []string{"hook pre_task failed", "failed: policy"}, "no answer within 100ms"},
		"wrong words": {pre("fine"), []string{"hook pre_task failed", "failed: policy"}, "is not valid"},
		"told":        {messages.Hook{On: messages.HookPostTask, Command: "fine", Timeout: messages.Duration(10 * time.Second)}, []string{"model", "completed"}, "done"},
		"not listed":  {pre("other"), []string{"failed: invalid_input"}, "hooks[0].command: the command other is not one that the operator listed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := ran(t, h, tt.hook)
			run.Want(t, tt.want...)
			if !strings.Contains(run.JSON(), tt.text) {
				t.Errorf("want %q in\n%s", tt.text, run.JSON())
			}
		})
	}
}
