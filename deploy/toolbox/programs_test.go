package toolbox_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/deploy/toolbox"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/sandbox/process"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/code/engine"
)

func TestMain(m *testing.M) {
	process.Init()
	if code := engine.Main(os.Args, os.Stdin, os.Stdout, os.Stderr); code >= 0 {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// The examples of docs/tools/shell.md and code.md do what the pages say.
func TestPagesOfPrograms(t *testing.T) {
	for _, page := range []string{"shell.md", "code.md"} {
		files, calls := examples(t, page, "yaml"), examples(t, page, "text")
		if len(files) != 2 || len(calls) != 1 {
			t.Fatalf("%s has %d files and %d plays", page, len(files), len(calls))
		}
		ws, err := sandbox.Open(filepath.Join(t.TempDir(), "ws"), sandbox.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		defer ws.Close()
		played(t, opened(t, files[0]), definition(t, files[1]), calls[0], "", ws)
	}
}

// A worker whose machine lacks a layer that is required does not offer the tools, and is not ready; it names the layer.
func TestProgramsWithoutALayer(t *testing.T) {
	box, err := toolbox.Open(t.Context(), load(t, "  shell: {programs: ['*'], require: [cgroup]}\n  code: {}\n"), toolbox.Needs{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	run, err := process.New(context.Background(), process.Config{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := box.Set()
	if err != nil {
		t.Fatal(err)
	}
	names := set.Names()
	if !slices.Contains(names, "run_code") {
		t.Errorf("run_code is not offered: %v", names)
	}
	has := run.Layers().Has(process.LayerCgroup)
	if slices.Contains(names, "shell") != has {
		t.Errorf("layers %s, offered %v", run.Layers(), names)
	}
	if err := box.Ready(); has != (err == nil) || err != nil && err.Error() != "tool shell: the sandbox is not available: without cgroup" {
		t.Errorf("layers %s, ready %v", run.Layers(), err)
	}
}

func TestPartsOfProgramsThatAreWrong(t *testing.T) {
	for part, want := range map[string]string{
		"  shell: {}\n":                      `spec.shell.programs: must name 1 to 256 programs, or "*" for all`,
		"  shell: {programs: [a], x: 1}\n":   "spec.shell.x: unknown field (line 4)",
		"  code: {python: python3}\n":        "spec.code.python: must be a whole path such as /usr/bin/python3",
		"  code: {limits: {memory: 1}}\n":    "spec.code.limits.memory: ",
		"  code: {programs: [a]}\n":          "spec.code.programs: ",
		"  shell: {programs: [a], env: 1}\n": "spec.shell.env: ",
	} {
		_, err := toolbox.Open(t.Context(), load(t, part), toolbox.Needs{Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", part, err)
		}
	}
}

// As many programs run at once as the operator says, and a command of a hook does not wait for those of tools.
func TestHooksHaveTurnsOfTheirOwn(t *testing.T) {
	granted := load(t, "  shell: {programs: [sh]}\n  hooks: {commands: {judge: {argv: [sh, -c, 'exit 2']}}}\n")
	granted.SandboxParallel = 1
	box, err := toolbox.Open(t.Context(), granted, toolbox.Needs{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	at := slices.IndexFunc(box.Tools, func(t tools.Tool) bool { return t.Spec().Name == "shell" })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun := make(chan struct{}, 2)
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() {
			_, err := box.Tools[at].Call(ctx, tools.Call{
				Arguments: []byte(`{"argv":["sh","-c","while :; do sleep 1; done"]}`), Begin: func() error { begun <- struct{}{}; return nil },
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("a program that never ends: %v", err)
			}
		})
	}
	<-begun
	hook, err := box.Commands.Hook(messages.Hook{On: messages.HookPreTool, Command: "judge"})
	if err != nil {
		t.Fatal(err)
	}
	limited, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	if answer, err := hook(limited, messages.HookCall{On: messages.HookPreTool}); err != nil || !answer.Denies() {
		t.Errorf("%+v, %v", answer, err)
	}
	if len(begun) > 0 {
		t.Error("two programs run at once")
	}
	cancel()
	calls.Wait()
}

// A setting of the sandbox that is wrong is named.
func TestSettingsOfTheSandbox(t *testing.T) {
	for _, tt := range []struct{ env, want string }{
		{"LONGSHORE_SANDBOX_PARALLEL=-1", "LONGSHORE_SANDBOX_PARALLEL: must be 1 to 1024"},
		{"LONGSHORE_SANDBOX_PARALLEL=1025", "LONGSHORE_SANDBOX_PARALLEL: must be 1 to 1024"},
		{"LONGSHORE_SANDBOX_CGROUP=longshore", "LONGSHORE_SANDBOX_CGROUP: must be a whole path"},
		{"LONGSHORE_SANDBOX_CGROUP=/sys/../etc", "LONGSHORE_SANDBOX_CGROUP: must be a whole path"},
	} {
		err := settings.Load(new(settings.Worker), []string{"NATS_URL=nats://127.0.0.1:4222", "REDIS_URL=none", "LONGSHORE_ENCRYPTION=off", "LONGSHORE_SCRIPT=x.yaml", tt.env})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.env, err)
		}
	}
}
