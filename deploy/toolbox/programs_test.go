package toolbox_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/deploy/toolbox"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/sandbox/process"
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
