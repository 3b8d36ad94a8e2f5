package sandbox_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/sandbox"
)

func TestFileSize(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, sandbox.Limits{FileSize: 4})
	write(t, w, "a", "1234")
	wantPathError(t, w.Write("a", []byte("12345")), "a: the content has 5 bytes, and a file may have 4")
	wantPathError(t, w.Write("../a", []byte("12345")), "../a: must stay inside the workspace")
	if got, err := w.Read("a"); err != nil || string(got) != "1234" {
		t.Errorf("after a refused write: %q, %v", got, err)
	}
	mustWrite(t, filepath.Join(dir, "big"), "12345")
	_, err := w.Read("big")
	wantPathError(t, err, "big: is larger than 4 bytes")
	write(t, w, "big", "1") // one that fits may take its place

	// A sparse file that claims a terabyte costs nothing to refuse.
	f, err := os.Create(filepath.Join(dir, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(1 << 40); err != nil {
		t.Fatal(err)
	}
	_, err = w.Read("sparse")
	wantPathError(t, err, "sparse: is larger than 4 bytes")
}

func TestAttack30TotalQuota(t *testing.T) {
	w := open(t, t.TempDir(), sandbox.Limits{Total: 10})
	write(t, w, "a", "123456")
	write(t, w, "d/b", "1234")
	full := "c: the workspace is full: all files together may have 10 bytes"
	wantPathError(t, w.Write("c", []byte("1")), full)
	write(t, w, "a", "12345") // a replaced file gives its bytes back
	write(t, w, "c", "1")
	wantPathError(t, w.Write("c", []byte("12")), full)
}

func TestAttack30FilesQuotaCountsFolders(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, sandbox.Limits{Files: 4})
	write(t, w, "a/b/c", "")
	full := ": the workspace is full: it may have 4 files and folders, 32 deep"
	wantPathError(t, w.Write("d/e", nil), "d/e"+full)
	write(t, w, "a/d", "")
	write(t, w, "a/d", "again")
	wantPathError(t, w.Write("e", nil), "e"+full)
	if diff := cmp.Diff([]string{"a", "a/b", "a/b/c", "a/d"}, tree(t, dir)); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

func TestDepth(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, sandbox.Limits{Depth: 3, Files: -1, Total: -1})
	write(t, w, "1/2/3", "")
	wantPathError(t, w.Write("1/2/x/4", nil), "1/2/x/4: must not have more than 3 parts")
	// Another program made a tree that is deeper.
	deep := strings.Repeat("/d", 600)
	if err := os.MkdirAll(filepath.Join(dir, deep), 0o700); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, filepath.Join(dir, deep, "f"), "")
	names, err := w.List(t.Context())
	if !errors.Is(err, sandbox.ErrMore) {
		t.Errorf("error is %v, want ErrMore", err)
	}
	if diff := cmp.Diff([]string{"1/2/3"}, names); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	counting := open(t, dir, sandbox.Limits{Depth: 3})
	wantPathError(t, counting.Write("x", nil),
		"x: the workspace is full: it may have 10000 files and folders, 3 deep")
}

func TestAttack29ListIsBounded(t *testing.T) {
	dir := t.TempDir()
	for i := range 40 {
		mustWrite(t, filepath.Join(dir, fmt.Sprintf("f%02d", i)), "")
	}
	for limit, want := range map[int]int{1: 1, 39: 39, 40: 40, 41: 40} {
		w := open(t, dir, sandbox.Limits{Listed: limit})
		names, err := w.List(t.Context())
		if len(names) != want {
			t.Errorf("limit %d: %d names, want %d", limit, len(names), want)
		}
		if more := errors.Is(err, sandbox.ErrMore); more != (limit < 40) {
			t.Errorf("limit %d: error is %v", limit, err)
		}
	}
}

func TestLeftoversOfCrashedWrites(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, sandbox.Limits{})
	write(t, w, "d/kept", "")
	fresh, stale := filepath.Join(dir, ".longshore-tmp-1"), filepath.Join(dir, "d", ".longshore-tmp-2")
	mustWrite(t, fresh, "of a write on its way")
	mustWrite(t, stale, "of a crash")
	old := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(stale, old, old); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"d/kept"}, list(t, w)); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	_, err := w.Read(".longshore-tmp-1")
	wantPathError(t, err, ".longshore-tmp-1: names that begin with .longshore-tmp- are reserved")
	write(t, w, "next", "")
	if diff := cmp.Diff([]string{".longshore-tmp-1", "d", "d/kept", "next"}, tree(t, dir)); diff != "" {
		t.Errorf("after the next write (-want +got):\n%s", diff)
	}
}
