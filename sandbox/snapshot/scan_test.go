package snapshot_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/sandbox/snapshot"
)

// write makes a file with the folders above it.
func write(tb testing.TB, dir, name, content string) {
	tb.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		tb.Fatal(err)
	}
}

func scan(tb testing.TB, dir string, c *snapshot.Cache, l snapshot.Limits) (*manifest.Manifest, error) {
	tb.Helper()
	f, err := os.Open(dir)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	return snapshot.Scan(tb.Context(), f, c, l)
}

// listed are the paths of a manifest; an executable file has a star, a folder a slash.
func listed(m *manifest.Manifest) (all []string) {
	for _, f := range m.Files {
		name := f.Path
		if f.Exec {
			name += "*"
		}
		all = append(all, name)
	}
	for _, d := range m.Folders {
		all = append(all, d+"/")
	}
	return all
}

// What is saved, and what is left out and counted.
func TestScan(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	write(t, outside, "secret", "s")
	write(t, dir, "b.txt", "two")
	write(t, dir, "a!x", "1")
	write(t, dir, "a/deep/file", "2")
	write(t, dir, "run.sh", "3")
	write(t, dir, "twice", "4")
	write(t, dir, sandbox.TempPrefix+"x", "5")
	write(t, dir, "line\nbreak", "6")
	write(t, dir, "\xff", "7")
	for _, err := range []error{
		os.Chmod(filepath.Join(dir, "run.sh"), 0o700),
		os.MkdirAll(filepath.Join(dir, "empty", "below"), 0o700),
		os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "link")),
		os.Symlink(outside, filepath.Join(dir, "a", "linked")),
		os.Link(filepath.Join(dir, "twice"), filepath.Join(dir, "again")),
		syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	m, err := scan(t, dir, &snapshot.Cache{}, snapshot.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a!x", "a/deep/file", "b.txt", "run.sh*", "empty/below/"}, listed(m)); diff != "" {
		t.Error(diff)
	}
	if m.LeftOut != 8 { // two links, two names of a file, a pipe, a socket, two names that no tool may use
		t.Errorf("%d names are left out", m.LeftOut)
	}
	if f, _ := m.Find("b.txt"); f.Size != 3 || f.Hash != manifest.HashOf([]byte("two")) {
		t.Errorf("b.txt is %+v", f)
	}
	if data, _, err := m.Encode(); err != nil {
		t.Error(err)
	} else if _, err := manifest.Decode(data); err != nil {
		t.Errorf("what was scanned cannot be read: %v", err)
	}
}

// A file is read again when anything but its name has changed, also when its size and time of change are as they were.
func TestScanKnowsWhatHasChanged(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, path string){
		"longer": func(t *testing.T, path string) { write(t, filepath.Dir(path), "f", "longer") },
		"as long, with the time of before": func(t *testing.T, path string) {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Dir(path), "f", "new")
			if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		},
		"another file": func(t *testing.T, path string) {
			write(t, filepath.Dir(path), "g", "new")
			if err := os.Rename(filepath.Join(filepath.Dir(path), "g"), path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, c := t.TempDir(), &snapshot.Cache{}
			path := filepath.Join(dir, "f")
			write(t, dir, "f", "old")
			first, err := scan(t, dir, c, snapshot.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			change(t, path)
			now, err := scan(t, dir, c, snapshot.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if changes := manifest.Compare(first, now); len(changes.Changed) != 1 || len(changes.Added)+len(changes.Removed) > 0 {
				t.Errorf("the changes are %+v", changes)
			}
		})
	}
}

func TestScanNamesTheFileBeyondALimit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "a", strings.Repeat("x", 10))
	write(t, dir, "d/b", strings.Repeat("x", 20))
	for name, tc := range map[string]struct {
		limits snapshot.Limits
		want   string
	}{
		"one file": {snapshot.Limits{FileSize: 19}, "d/b: has 20 bytes, and a file that is kept may have 19"},
		"together": {snapshot.Limits{Total: 29, FileSize: 29}, "the files of a run may have 29 bytes together"},
		"count":    {snapshot.Limits{Files: 2}, "a run may keep 2 files and folders"},
		"depth":    {snapshot.Limits{Depth: 1}, "d/b: has more than 1 parts"},
	} {
		m, err := scan(t, dir, &snapshot.Cache{}, tc.limits)
		if _, ok := errors.AsType[*sandbox.PathError](err); !ok || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, %v, want %q", name, m, err, tc.want)
		}
	}
	if _, err := scan(t, dir, &snapshot.Cache{}, snapshot.Limits{Files: 3, Total: 30, FileSize: 20, Depth: 2}); err != nil {
		t.Errorf("what is within the limits: %v", err)
	}
}

// Files that come, go, change and become links while a folder is scanned are no error but one that names a file; nothing from outside the
// folder is listed.
func TestScanWhileFilesChange(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	write(t, outside, "f", "outside")
	stop := make(chan struct{})
	var changing sync.WaitGroup
	for _, change := range []func(i int){
		func(i int) { // a file that vanishes
			path := filepath.Join(dir, "vanishing")
			_ = os.WriteFile(path, []byte("here"), 0o600)
			_ = os.Remove(path)
		},
		func(i int) { // a folder that is swapped for a link
			path := filepath.Join(dir, "swapped")
			_ = os.Mkdir(path, 0o700)
			_ = os.WriteFile(filepath.Join(path, "f"), []byte("inside"), 0o600)
			_ = os.RemoveAll(path)
			_ = os.Symlink(outside, path)
			_ = os.Remove(path)
		},
		func(i int) { // a file that is swapped for a link, and for a pipe
			path := filepath.Join(dir, "turned")
			_ = os.WriteFile(path, []byte("inside"), 0o600)
			_ = os.Remove(path)
			_ = os.Symlink(filepath.Join(outside, "f"), path)
			_ = os.Remove(path)
			_ = syscall.Mkfifo(path, 0o600)
			_ = os.Remove(path)
		},
		func(i int) { // one that is written to
			_ = os.WriteFile(filepath.Join(dir, "growing"), []byte(strings.Repeat("x", i%5000)), 0o600)
		},
	} {
		changing.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					change(i)
				}
			}
		})
	}
	c, forbidden := &snapshot.Cache{}, manifest.HashOf([]byte("outside"))
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		m, err := scan(t, dir, c, snapshot.Limits{})
		if err != nil {
			if pe, ok := errors.AsType[*sandbox.PathError](err); !ok || pe.Path == "" {
				t.Errorf("scan: %v", err)
			}
			continue
		}
		for _, f := range m.Files {
			if f.Hash == forbidden {
				t.Errorf("%s is the file outside", f.Path)
			}
		}
	}
	close(stop)
	changing.Wait()
}

func TestScanEndsWithItsContext(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "a", "1")
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	over := errors.New("the claim is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	if _, err := snapshot.Scan(ctx, f, &snapshot.Cache{}, snapshot.Limits{}); !errors.Is(err, over) {
		t.Errorf("scan: %v", err)
	}
}
