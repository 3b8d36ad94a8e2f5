package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/sandbox"
)

func open(t *testing.T, dir string, l sandbox.Limits) *sandbox.Workspace {
	t.Helper()
	w, err := sandbox.Open(dir, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func write(t *testing.T, w *sandbox.Workspace, name, content string) {
	t.Helper()
	if err := w.Write(name, []byte(content)); err != nil {
		t.Fatal(err)
	}
}

func list(t *testing.T, w *sandbox.Workspace) []string {
	t.Helper()
	names, err := w.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// wantPathError checks that err is a *PathError with exactly this text.
func wantPathError(t *testing.T, err error, text string) {
	t.Helper()
	if _, ok := errors.AsType[*sandbox.PathError](err); !ok {
		t.Fatalf("error is %T (%v), want a *PathError", err, err)
	}
	if diff := cmp.Diff(text, err.Error()); diff != "" {
		t.Errorf("error text (-want +got):\n%s", diff)
	}
}

func TestWriteReadList(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	w := open(t, dir, sandbox.Limits{})
	for name, content := range map[string]string{
		"b.txt": "b", "a/z.txt": "z", "a-b.txt": "", "./a/deep/er.txt": "er", "%2e%2e": "percent", `..\x`: "backslash",
		"\u2025/x": "dots", ".hidden": "h",
	} {
		write(t, w, name, content)
		got, err := w.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != content {
			t.Errorf("%s holds %q, want %q", name, got, content)
		}
	}
	want := []string{"%2e%2e", `..\x`, ".hidden", "a-b.txt", "a/deep/er.txt", "a/z.txt", "b.txt", "\u2025/x"}
	if diff := cmp.Diff(want, list(t, w)); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	write(t, w, "b.txt", "shorter or longer")
	if got, _ := w.Read("b.txt"); string(got) != "shorter or longer" {
		t.Errorf("after the second write: %q", got)
	}
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode of the folder is %v", info.Mode().Perm())
	}
}

func TestReadErrors(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, sandbox.Limits{FileSize: 10})
	write(t, w, "d/f", "0123456789")
	for name, c := range map[string]struct{ name, want string }{
		"missing":         {"no.txt", "no.txt: does not exist"},
		"missing folder":  {"x/y/z", "x/y/z: does not exist"},
		"folder":          {"d", "d: is a folder"},
		"root":            {"./.", "./.: is a folder"},
		"through a file":  {"d/f/g", "d/f/g: d/f is a file, not a folder"},
		"part too long":   {strings.Repeat("n", 256), strings.Repeat("n", 200) + "…: a part of the path is too long"},
		"name as written": {"./no.txt", "./no.txt: does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.Read(c.name)
			wantPathError(t, err, c.want)
		})
	}
	_, err := w.Read("no.txt")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v is not fs.ErrNotExist", err)
	}
}

func TestAtomicWrite(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, sandbox.Limits{})
	write(t, w, "run.sh", "old")
	path := filepath.Join(dir, "run.sh")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	write(t, w, "run.sh", "new content")
	old := make([]byte, 100)
	n, err := reader.Read(old)
	if err != nil {
		t.Fatal(err)
	}
	if string(old[:n]) != "old" {
		t.Errorf("who had it open reads %q, want the old content", old[:n])
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o755 {
		t.Errorf("mode is %v, want that of the replaced file", info.Mode().Perm())
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestFailedWriteLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, sandbox.Limits{})
	write(t, w, "d/f", "x")
	wantPathError(t, w.Write("d", []byte("y")), "d: is a folder")
	wantPathError(t, w.Write("d/f/g", []byte("y")), "d/f/g: d/f is a file, not a folder")
	if diff := cmp.Diff([]string{"d", "d/f"}, tree(t, dir)); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

func TestConcurrentWrites(t *testing.T) {
	dir := t.TempDir()
	const writers, rounds, files = 8, 20, 5
	w := open(t, dir, sandbox.Limits{Files: files, Total: files * 1000})
	var wg sync.WaitGroup
	errs := make(chan error, writers*rounds*2)
	for i := range writers {
		wg.Go(func() {
			body := []byte(strings.Repeat(strconv.Itoa(i), 1000))
			for n := range rounds {
				name := fmt.Sprintf("f%d", n%files)
				errs <- w.Write(name, body)
				got, err := w.Read(name)
				if err == nil && (len(got) != 1000 || strings.Trim(string(got), string(got[:1])) != "") {
					err = fmt.Errorf("%s holds a mixture", name)
				}
				errs <- err
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	if got := len(tree(t, dir)); got != files {
		t.Errorf("%d entries, want %d", got, files)
	}
}

func TestClosed(t *testing.T) {
	w, err := sandbox.Open(t.TempDir(), sandbox.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, readErr := w.Read("a")
	_, listErr := w.List(t.Context())
	for call, err := range map[string]error{"read": readErr, "write": w.Write("a", nil), "list": listErr} {
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: %v, want os.ErrClosed", call, err)
		}
	}
}

func TestListStopsWithItsContext(t *testing.T) {
	w := open(t, t.TempDir(), sandbox.Limits{})
	write(t, w, "a", "")
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := w.List(ctx); !errors.Is(err, why) {
		t.Errorf("error is %v, want %v", err, why)
	}
}

func TestWorkspaces(t *testing.T) {
	dir := t.TempDir()
	all, err := sandbox.NewWorkspaces(filepath.Join(dir, "runs"), sandbox.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	for _, run := range []messages.Ref{{Tenant: "t", Run: "1"}, {Tenant: "t", Run: "2"}, {Tenant: "u", Run: "1"}} {
		w, err := all.Open(run)
		if err != nil {
			t.Fatal(err)
		}
		write(t, w, "who", run.String())
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if w, err = all.Open(run); err != nil {
			t.Fatal(err)
		}
		got, err := w.Read("who")
		if err != nil || string(got) != run.String() {
			t.Errorf("opened again: %q, %v", got, err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"runs", "runs/t", "runs/t/1", "runs/t/1/who", "runs/t/2", "runs/t/2/who", "runs/u", "runs/u/1",
		"runs/u/1/who",
	}
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	for _, run := range []messages.Ref{{Tenant: "..", Run: "1"}, {Tenant: "t", Run: "../u/1"}, {Tenant: "t"}, {Run: "1"}} {
		var fe *messages.FieldError
		if _, err := all.Open(run); !errors.As(err, &fe) {
			t.Errorf("open %q: %v, want a *messages.FieldError", run, err)
		}
	}
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Errorf("tree after refused runs (-want +got):\n%s", diff)
	}
}

func TestWorkspacesRefuseALinkOutAndAFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "runs"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, filepath.Join(dir, "runs", "out")); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, filepath.Join(dir, "runs", "file"), "")
	all, err := sandbox.NewWorkspaces(filepath.Join(dir, "runs"), sandbox.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	for _, tenant := range []string{"out", "file"} {
		w, err := all.Open(messages.Ref{Tenant: tenant, Run: "r"})
		if err != nil {
			t.Fatal(err)
		}
		if err = w.Write("a.txt", []byte("a")); err == nil {
			t.Errorf("%s was opened: %v", tenant, w.Close())
			continue
		}
		if strings.Contains(err.Error(), dir) {
			t.Errorf("the error shows the host's path: %v", err)
		}
	}
	if diff := cmp.Diff([]string{"runs", "runs/file", "runs/out"}, tree(t, dir)); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

func TestInPlace(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, filepath.Join(dir, "mine.txt"), "here before")
	openRun := sandbox.InPlace(dir, sandbox.Limits{})
	for _, run := range []string{"1", "2"} {
		w, err := openRun(messages.Ref{Tenant: "t", Run: run})
		if err != nil {
			t.Fatal(err)
		}
		write(t, w, run, "x")
		if _, err := w.Read("mine.txt"); err != nil {
			t.Error(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"1", "2", "mine.txt"}, tree(t, dir)); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

func mustWrite(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tree lists everything below dir, by the host's own means.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, p); rel != "." {
			out = append(out, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
