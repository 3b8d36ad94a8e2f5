package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/sandbox"
)

func TestWriteAllIsAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, sandbox.Limits{})
	write(t, w, "d/old", "old")
	before := tree(t, dir)
	ended, cancel := context.WithCancelCause(t.Context())
	why, lost := errors.New("enough"), errors.New("the run is another worker's")
	cancel(why)
	for name, c := range map[string]struct {
		ended bool
		names []string
		begin func() error
		want  string
	}{
		"one is refused":       {false, []string{"new", "d/old", "../x"}, nil, "../x: must stay inside the workspace"},
		"one is a folder":      {false, []string{"new/deep/x", "d"}, nil, "d: is a folder"},
		"one below a file":     {false, []string{"new", "d/old/x"}, nil, "d/old/x: d/old is a file, not a folder"},
		"twice":                {false, []string{"new", "./new"}, nil, "./new: is named twice"},
		"file that is above":   {false, []string{"a/b/c", "a"}, nil, "a/b/c: a is written too, as a file"},
		"the run is elsewhere": {false, []string{"n/e/w", "n/f", "d/old"}, func() error { return lost }, lost.Error()},
		"ended":                {true, []string{"n/e/w", "d/old"}, nil, why.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if c.ended {
				ctx = ended
			}
			var files []sandbox.File
			for _, n := range c.names {
				files = append(files, sandbox.File{Name: n, Data: []byte("new")})
			}
			if err := w.WriteAll(ctx, files, c.begin); err == nil || err.Error() != c.want {
				t.Errorf("error %v, want %s", err, c.want)
			}
			if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
				t.Errorf("tree (-want +got):\n%s", diff)
			}
			if got, err := w.Read("d/old"); err != nil || string(got) != "old" {
				t.Errorf("the old file holds %q, %v", got, err)
			}
		})
	}
	if err := w.WriteAll(t.Context(), nil, nil); err != nil {
		t.Error(err)
	}
	if err := writeAll(w, "d/old", "n/e/w", "n/f"); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"d", "d/old", "n", "n/e", "n/e/w", "n/f"}, tree(t, dir)); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

const crashEnv = "SANDBOX_TEST_WRITES_IN"

// many are files enough that a kill falls between their renames.
func many(round string) []sandbox.File {
	var files []sandbox.File
	for i := range 100 {
		files = append(files, sandbox.File{Name: fmt.Sprintf("d%d/f%02d", i%7, i), Data: []byte(round + strings.Repeat("x", 100))})
	}
	return files
}

// TestHelperWritesForEver is the process that TestCrashOfWriteAll kills.
func TestHelperWritesForEver(t *testing.T) {
	dir := os.Getenv(crashEnv)
	if dir == "" {
		return
	}
	w := open(t, dir, sandbox.Limits{Total: -1, Files: -1})
	if err := w.WriteAll(t.Context(), many("new"), nil); err != nil {
		t.Fatal(err)
	}
}

// A process is killed in the middle of a WriteAll, wherever that is. Each file is the old or the new one, whole, the new ones
// are the first, and the same call again makes all of them new.
func TestCrashOfWriteAll(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, sandbox.Limits{})
	if err := w.WriteAll(t.Context(), many("old"), nil); err != nil {
		t.Fatal(err)
	}
	p := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHelperWritesForEver$")
	p.Env = append(os.Environ(), crashEnv+"="+dir)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for i := 0; ; i++ { // until the first renames
		got, err := w.Read("d1/f01")
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%q, %v after %d looks", got, err, i)
		}
		if strings.HasPrefix(string(got), "new") {
			break
		}
	}
	_ = p.Process.Kill()
	_ = p.Wait()
	written := 0
	for i, f := range many("new") {
		got, err := w.Read(f.Name)
		switch {
		case err != nil:
			t.Fatal(err)
		case string(got) == string(f.Data):
			if written++; written != i+1 {
				t.Fatalf("%s is new, and one before it is not", f.Name)
			}
		case string(got) != string(many("old")[i].Data):
			t.Fatalf("%s holds %q", f.Name, got)
		}
	}
	t.Logf("killed when %d of 100 were new", written)
	if err := w.WriteAll(t.Context(), many("new"), nil); err != nil {
		t.Fatal(err)
	}
	for _, f := range many("new") {
		if got, err := w.Read(f.Name); err != nil || string(got) != string(f.Data) {
			t.Fatalf("%s holds %q, %v", f.Name, got, err)
		}
	}
	if names := list(t, w); len(names) != 100 {
		t.Errorf("%d files are listed", len(names))
	}
	// What the killed process had staged does not stay.
	old := time.Now().Add(-2 * time.Hour)
	for _, n := range tree(t, dir) {
		if strings.HasPrefix(filepath.Base(n), ".longshore-tmp-") {
			if err := os.Chtimes(filepath.Join(dir, n), old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(t, w, "next", "")
	if n := len(tree(t, dir)); n != 100+7+1 {
		t.Errorf("%d entries, want 108", n)
	}
}
