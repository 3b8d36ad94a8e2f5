package cli_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	busfiles "github.com/longshore-run/longshore/messages/bus/files"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/messages/record"
)

// withFiles writes the log of a run that changed files in steps 1 and 2.
func withFiles(t *testing.T) *fleet {
	t.Helper()
	f := newFleet(t)
	b, err := bus.Open(t.Context(), embeddedtest.Conn(t, f.servers), bus.Config{})
	if err != nil {
		t.Fatal(err)
	}
	store, run := busfiles.New(b), dispatcher.Run("files")
	save := func(step int, contents ...string) *record.FilesSaved {
		m := &manifest.Manifest{}
		put := func(data []byte) string {
			hash := manifest.HashOf(data)
			if err := store.Put(t.Context(), run.Tenant, hash, int64(len(data)), bytes.NewReader(data)); err != nil {
				t.Fatal(err)
			}
			return hash
		}
		for i := 0; i < len(contents); i += 2 {
			m.Files = append(m.Files, manifest.File{Path: contents[i], Size: int64(len(contents[i+1])), Hash: put([]byte(contents[i+1]))})
		}
		data, hash, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		put(data)
		if err := store.Refer(t.Context(), run, hash); err != nil {
			t.Fatal(err)
		}
		return &record.FilesSaved{Step: step, Manifest: hash, Files: len(m.Files), Bytes: m.Bytes()}
	}
	task := messages.Task{ID: run.Run, Tenant: run.Tenant, Input: messages.TextInput("write")}
	task.SetDefaults()
	now := time.Now()
	if _, err := f.controller.Begin(t.Context(), run,
		&record.Started{Task: task, Agent: messages.BuiltinAgent(), QueuedAt: now}, &record.Claimed{Claim: "c", Worker: "w", Ticket: 1}, &record.StepStarted{Step: 1},
		save(1, "a.txt", "one\ntwo\n", "gone.txt", "old\n", "logo.png", "\x89PNG\x00"), &record.StepEnded{Step: 1, Status: messages.StepCompleted}, &record.StepStarted{Step: 2},
		save(2, "a.txt", "one\n2\n\x1b[31mred\n", "logo.png", "\x89PNG\x01\x00", "new.txt", "hi\n"), &record.StepEnded{Step: 2, Status: messages.StepCompleted},
	); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFiles(t *testing.T) {
	f := withFiles(t)
	stdout, _ := f.run(t, "files", "ls", "files")
	want := "NAME      SIZE  HASH          TYPE\n" +
		"a.txt     15    " + manifest.HashOf([]byte("one\n2\n\x1b[31mred\n"))[:12] + "  text/plain; charset=utf-8\n" +
		"logo.png  6     " + manifest.HashOf([]byte("\x89PNG\x01\x00"))[:12] + "  image/png\n" +
		"new.txt   3     " + manifest.HashOf([]byte("hi\n"))[:12] + "  text/plain; charset=utf-8\n"
	if diff := cmp.Diff(want, stdout); diff != "" {
		t.Error(diff)
	}
	stdout, _ = f.run(t, "files", "ls", "files", "--step", "1", "-o", "json")
	if lines := strings.Split(stdout, "\n"); len(lines) != 4 || !strings.HasPrefix(lines[1], `{"name":"gone.txt","size":4,"type":"text/plain; charset=utf-8","hash":"`) {
		t.Errorf("as JSON: %s", stdout)
	}
	if stdout, stderr := f.run(t, "files", "ls", "files", "--step", "0"); stdout != "" || stderr != "run files has no files there\n" {
		t.Errorf("before the first step: %q, told %q", stdout, stderr)
	}
	for name, args := range map[string][]string{
		"a step before the first": {"files", "ls", "files", "--step", "-1"}, "no name": {"files", "get", "files"}, "JSON without a file": {"files", "get", "files", "a.txt", "-o", "json"},
		"no file": {"files", "get", "files", "a.txt", "--out", ""}, "a diff to nothing": {"files", "diff", "files", "--step", "0"},
	} {
		if _, _, err := executeWith(t, f.connect, "", args...); !isUsage(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	f.fails(t, "no run none of tenant default: `longshore list` shows those of the last day; --tenant names another tenant", "files", "ls", "none")
}

func TestGetAFile(t *testing.T) {
	f := withFiles(t)
	if stdout, _ := f.run(t, "files", "get", "files", "a.txt"); stdout != "one\n2\n\\x1b[31mred\n" {
		t.Errorf("a terminal is shown %q", stdout)
	}
	if got := f.raw(t, "files", "get", "files", "logo.png"); got != "\x89PNG\x01\x00" {
		t.Errorf("a program is given %q", got)
	}
	f.fails(t, "the file is not text: name a file with --out", "files", "get", "files", "logo.png")
	f.fails(t, "no such file: \"none\" is not among the files of the run: see `longshore files ls files`", "files", "get", "files", "none")
	out := filepath.Join(t.TempDir(), "out.png")
	f.run(t, "files", "get", "files", "logo.png", "--step", "1", "--out", out)
	holds := func(want string) {
		t.Helper()
		if got, err := os.ReadFile(out); err != nil || string(got) != want {
			t.Errorf("the file holds %q, %v", got, err)
		}
	}
	holds("\x89PNG\x00")
	f.fails(t, out+" exists: choose another name, or replace it with --force", "files", "get", "files", "logo.png", "--out", out)
	holds("\x89PNG\x00")
	if stdout, _ := f.run(t, "files", "get", "files", "logo.png", "--out", out, "--force", "-o", "json"); !strings.HasPrefix(stdout, `{"name":"logo.png","size":6,`) {
		t.Errorf("as JSON: %s", stdout)
	}
	holds("\x89PNG\x01\x00")
	if _, _, err := executeWith(t, f.connect, "", "files", "get", "files", "none", "--out", out, "--force"); err == nil {
		t.Error("a file that is not there is got")
	}
	holds("\x89PNG\x01\x00")
	if left, err := os.ReadDir(filepath.Dir(out)); err != nil || len(left) != 1 {
		t.Errorf("left beside it: %v, %v", left, err)
	}
}

func TestDiffOfFiles(t *testing.T) {
	f := withFiles(t)
	stdout, _ := f.run(t, "files", "diff", "files", "--step", "2")
	want := `--- /dev/null
+++ b/new.txt
@@ -0,0 +1 @@
+hi
--- a/a.txt
+++ b/a.txt
@@ -1,2 +1,3 @@
 one
-two
+2
+\x1b[31mred
Files a/logo.png and b/logo.png differ
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-old
`
	if diff := cmp.Diff(want, stdout); diff != "" {
		t.Error(diff)
	}
	if all, _ := f.run(t, "files", "diff", "files"); strings.Contains(all, "gone.txt") || !strings.Contains(all, "+++ b/a.txt\n@@ -0,0 +1,3 @@\n+one\n") {
		t.Errorf("of the whole run: %s", all)
	}
	stdout, _ = f.run(t, "files", "diff", "files", "--step", "2", "-o", "json")
	if lines := strings.Split(stdout, "\n"); len(lines) != 5 || !strings.HasPrefix(lines[3], `{"name":"gone.txt","change":"removed","before":{"name":"gone.txt","size":4,`) {
		t.Errorf("as JSON: %s", stdout)
	}
	if stdout, stderr := f.run(t, "files", "diff", "files", "--step", "3"); stdout != "" || stderr != "no files differ\n" {
		t.Errorf("a step that changed nothing: %q, told %q", stdout, stderr)
	}
}

func isUsage(err error) bool {
	_, is := errors.AsType[*render.UsageError](err)
	return is
}
