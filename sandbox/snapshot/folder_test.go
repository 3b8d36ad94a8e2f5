package snapshot_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/sandbox/snapshot"
)

var run = messages.Ref{Tenant: "acme", Run: "r1"}

func open(t *testing.T, cfg snapshot.Config) *snapshot.Folders {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	f, err := snapshot.NewFolders(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func claim(t *testing.T, f *snapshot.Folders, name string) *snapshot.Folder {
	t.Helper()
	c, err := f.Of(run, name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// save saves and returns what has changed.
func save(t *testing.T, f *snapshot.Folder) *snapshot.Saved {
	t.Helper()
	s, err := f.Save(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// at is where the folder of the only claim is.
func at(t *testing.T, dir string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, ".claims", "*", "*"))
	if err != nil || len(all) != 1 {
		t.Fatalf("folders of claims: %v, %v", all, err)
	}
	return all[0]
}

// Files, folders without files and the right to execute come back, on another machine and after several changes.
func TestSaveAndRestore(t *testing.T) {
	t.Parallel()
	store, dir, there := &snapshot.Memory{}, t.TempDir(), t.TempDir()
	first := claim(t, open(t, snapshot.Config{Dir: dir, Store: store}), "c1")
	ws := first.Workspace(t.Context(), "")
	if s := save(t, first); s != nil {
		t.Errorf("nothing was touched, but %+v is saved", s)
	}
	if err := errors.Join(ws.Write("a/b.txt", []byte("1")), ws.Write("same", []byte("1")), ws.Write("run.sh", []byte("x")), ws.Mkdir("empty/below")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(at(t, dir), "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	before := save(t, first)
	if len(before.Changes.Added) != 3 {
		t.Errorf("added: %+v", before.Changes)
	}
	if _, err := ws.Read("same"); err != nil {
		t.Fatal(err)
	}
	if s := save(t, first); s != nil {
		t.Errorf("a file was read, and %+v is saved", s)
	}
	if err := errors.Join(ws.Write("same", []byte("1")), ws.Remove("a/b.txt"), ws.Write("run.sh", []byte("y"))); err != nil {
		t.Fatal(err)
	}
	after := save(t, first)
	if c := after.Changes; len(c.Added) != 0 || len(c.Changed) != 1 || len(c.Removed) != 1 {
		t.Errorf("changes: %+v", c)
	}

	for hash, want := range map[string][]string{
		before.Hash: {"a/b.txt", "run.sh*", "same", "empty/below/"},
		after.Hash:  {"run.sh*", "same", "a/", "empty/below/"},
	} {
		other := claim(t, open(t, snapshot.Config{Dir: there, Store: store}), "c2")
		if _, err := other.Workspace(t.Context(), hash).List(t.Context()); err != nil {
			t.Fatal(err)
		}
		m, err := scan(t, at(t, there), &snapshot.Cache{}, snapshot.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, listed(m)); diff != "" {
			t.Error(diff)
		}
		other.Workspace(t.Context(), hash).Touch(true)
		if s := save(t, other); s != nil {
			t.Errorf("nothing has changed since it was restored, but %+v", s.Changes)
		}
		if err := other.Close(false); err != nil {
			t.Error(err)
		}
		if left, _ := filepath.Glob(filepath.Join(there, ".claims", "*", "*")); len(left) != 0 {
			t.Errorf("a closed claim leaves %v", left)
		}
	}
}

// failing is a store of which some calls fail.
type failing struct {
	snapshot.Memory
	put, get func(hash string) error
}

func (f *failing) Put(ctx context.Context, tenant, hash string, size int64, r io.Reader) error {
	if f.put != nil {
		if err := f.put(hash); err != nil {
			return err
		}
	}
	return f.Memory.Put(ctx, tenant, hash, size, r)
}

func (f *failing) Get(ctx context.Context, tenant, hash string, size int64, w io.Writer) error {
	if f.get != nil {
		if err := f.get(hash); err != nil {
			return err
		}
	}
	return f.Memory.Get(ctx, tenant, hash, size, w)
}

// A save that fails is made again with all that it is about.
func TestSaveFailsAndIsMadeAgain(t *testing.T) {
	t.Parallel()
	away := errors.New("the store does not answer")
	store := &failing{put: func(string) error { return away }}
	f := claim(t, open(t, snapshot.Config{Store: store}), "c1")
	if err := f.Workspace(t.Context(), "").Write("a", []byte("1")); err != nil {
		t.Fatal(err)
	}
	if s, err := f.Save(t.Context(), true); !errors.Is(err, away) {
		t.Errorf("saved %+v, %v", s, err)
	}
	store.put = nil
	if s := save(t, f); s == nil || len(s.Changes.Added) != 1 {
		t.Errorf("saved %+v", s)
	}
}

// A file that changes, vanishes or becomes a link between its hash and its storing is scanned again. What is stored is what the hash says.
func TestFileChangesWhileItIsSaved(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(path string) error
		want   []string
	}{
		"changes":        {func(path string) error { return os.WriteFile(path, []byte("new"), 0o600) }, []string{"a", "b"}},
		"vanishes":       {os.Remove, []string{"b"}},
		"becomes a link": {func(path string) error { return errors.Join(os.Remove(path), os.Symlink(outside, path)) }, []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, once := t.TempDir(), true
			store := &hooked{has: func() {
				if !once {
					return
				}
				once = false
				if err := tc.change(filepath.Join(at(t, dir), "a")); err != nil {
					t.Error(err)
				}
			}}
			f := claim(t, open(t, snapshot.Config{Dir: dir, Store: store}), "c1")
			ws := f.Workspace(t.Context(), "")
			if err := errors.Join(ws.Write("a", []byte("old content")), ws.Write("b", []byte("2"))); err != nil {
				t.Fatal(err)
			}
			s := save(t, f)
			if diff := cmp.Diff(tc.want, listed(s.Manifest)); diff != "" {
				t.Error(diff)
			}
			if has, _ := store.Memory.Has(t.Context(), run.Tenant, manifest.HashOf([]byte("secret"))); has {
				t.Error("what is outside was stored")
			}
		})
	}
}

// hooked calls has before it looks for a content, one at a time.
type hooked struct {
	snapshot.Memory
	mu  sync.Mutex
	has func()
}

func (h *hooked) Has(ctx context.Context, tenant, hash string) (bool, error) {
	h.mu.Lock()
	h.has()
	h.mu.Unlock()
	return h.Memory.Has(ctx, tenant, hash)
}

// A restore that fails names the file and leaves nothing; the next one that is tried succeeds.
func TestRestoreFails(t *testing.T) {
	t.Parallel()
	store := &failing{}
	first := claim(t, open(t, snapshot.Config{Store: store}), "c1")
	if err := first.Workspace(t.Context(), "").Write("notes/a", []byte("content")); err != nil {
		t.Fatal(err)
	}
	saved := save(t, first)
	content := manifest.HashOf([]byte("content"))
	for name, tc := range map[string]struct {
		limits snapshot.Limits
		get    func(hash string) error
		hash   string
		want   string
	}{
		"no manifest": {hash: manifest.HashOf([]byte("none")), want: manifest.ErrMissing.Error()},
		"a content is missing": {get: func(hash string) error {
			if hash == content {
				return manifest.ErrMissing
			}
			return nil
		}, want: "restore notes/a: " + manifest.ErrMissing.Error()},
		"too large for this worker": {limits: snapshot.Limits{Total: 3}, want: "this worker takes"},
		"not a manifest":            {hash: content, want: "decode manifest"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f := claim(t, open(t, snapshot.Config{Dir: dir, Store: store, Limits: tc.limits}), "c2")
			hash := tc.hash
			if hash == "" {
				hash = saved.Hash
			}
			store.get = tc.get
			_, err := f.Workspace(t.Context(), hash).Read("notes/a")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("restored: %v, want %q", err, tc.want)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, ".claims", "*", "*")); len(left) != 0 {
				t.Errorf("a restore that failed leaves %v", left)
			}
			store.get = nil
			if tc.limits == (snapshot.Limits{}) {
				if data, err := f.Workspace(t.Context(), saved.Hash).Read("notes/a"); err != nil || string(data) != "content" {
					t.Errorf("the next try: %q, %v", data, err)
				}
			}
		})
	}
}

// spoiled is a store whose contents are not what their hash says.
type spoiled struct{ snapshot.Memory }

func (s *spoiled) Get(ctx context.Context, tenant, hash string, size int64, w io.Writer) error {
	if size > 1000 { // the manifest
		return s.Memory.Get(ctx, tenant, hash, size, w)
	}
	_, err := io.WriteString(w, strings.Repeat("x", int(size)))
	return err
}

// What is restored is verified, whatever the store says.
func TestRestoreVerifies(t *testing.T) {
	t.Parallel()
	store := &spoiled{}
	first := claim(t, open(t, snapshot.Config{Store: store}), "c1")
	if err := first.Workspace(t.Context(), "").Write("a", []byte("content")); err != nil {
		t.Fatal(err)
	}
	f := claim(t, open(t, snapshot.Config{Store: store}), "c2")
	if _, err := f.Workspace(t.Context(), save(t, first).Hash).Read("a"); !errors.Is(err, manifest.ErrDamaged) {
		t.Errorf("a damaged content is restored: %v", err)
	}
}

// The folder of a run that has ended stays for people, and goes when its time is over; that of any other claim goes at once.
func TestFolderOfARunThatHasEnded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	all := open(t, snapshot.Config{Dir: dir, Store: &snapshot.Memory{}, Keep: time.Hour})
	for i := range 2 { // an id may come again
		f := claim(t, all, "c1")
		if err := f.Workspace(t.Context(), "").Write("a", []byte{byte('1' + i)}); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(true); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, "acme", "r1", "a"))
		if err != nil || string(data) != string(byte('1'+i)) {
			t.Errorf("the folder has %q, %v", data, err)
		}
		if _, err := f.Workspace(t.Context(), "").Read("a"); !errors.Is(err, os.ErrClosed) {
			t.Errorf("a closed claim is used: %v", err)
		}
	}
	if err := all.Sweep(time.Now().Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "acme", "r1")); err != nil {
		t.Errorf("it is removed too early: %v", err)
	}
	if err := all.Sweep(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "acme", "r1")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is not removed: %v", err)
	}
	unused := claim(t, all, "c2")
	if err := unused.Close(true); err != nil {
		t.Errorf("a claim that used no files: %v", err)
	}
}

// A folder without files of the log, of an earlier version, is taken over; the copy of a run that has ended is not.
func TestFolderOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "acme/r1/a", "of before")
	all := open(t, snapshot.Config{Dir: dir, Store: &snapshot.Memory{}})
	f := claim(t, all, "c1")
	if data, err := f.Workspace(t.Context(), "").Read("a"); err != nil || string(data) != "of before" {
		t.Fatalf("it has %q, %v", data, err)
	}
	if s := save(t, f); s == nil || len(s.Changes.Added) != 1 {
		t.Errorf("what was taken over is not saved: %+v", s)
	}
	if err := f.Close(true); err != nil {
		t.Fatal(err)
	}
	next := claim(t, all, "c2")
	if _, err := next.Workspace(t.Context(), "").Read("a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a copy is taken over: %v", err)
	}
}

// What a process that died has left is found and removed, and what a live one has is not. A program may have left folders that their owner
// may not change.
func TestStrays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	live := open(t, snapshot.Config{Dir: dir, Store: &snapshot.Memory{}})
	f := claim(t, live, "c1")
	if err := f.Workspace(t.Context(), "").Write("a", nil); err != nil {
		t.Fatal(err)
	}
	write(t, dir, ".claims/dead/acme.r1.c0/d/e/f", "left")
	if err := os.Chmod(filepath.Join(dir, ".claims/dead/acme.r1.c0/d"), 0o500); err != nil {
		t.Fatal(err)
	}
	if n, err := snapshot.Strays(dir, false); err != nil || n != 1 {
		t.Errorf("%d strays, %v", n, err)
	}
	open(t, snapshot.Config{Dir: dir, Store: &snapshot.Memory{}})
	if n, err := snapshot.Strays(dir, true); err != nil || n != 0 {
		t.Errorf("%d strays are left, %v", n, err)
	}
	if n, err := snapshot.Strays(t.TempDir(), true); err != nil || n != 0 {
		t.Errorf("an empty folder has %d strays, %v", n, err)
	}
	if _, err := f.Workspace(t.Context(), "").Read("a"); err != nil {
		t.Errorf("the folder of a live worker: %v", err)
	}
}

func TestOfRefuses(t *testing.T) {
	t.Parallel()
	all := open(t, snapshot.Config{Store: &snapshot.Memory{}})
	for _, name := range []string{"", ".", "..", "../x", "a/b", ".hidden"} {
		if _, err := all.Of(run, name); err == nil {
			t.Errorf("a claim %q has a folder", name)
		}
	}
	if _, err := all.Of(messages.Ref{Tenant: "..", Run: "r"}, "c"); err == nil {
		t.Error("a tenant outside has a folder")
	}
}

// Other than a link that is swapped in, a file that is restored never leaves the folder: the folder is fresh, and paths are checked.
func TestRestoreStaysInside(t *testing.T) {
	t.Parallel()
	store := &snapshot.Memory{}
	hash := manifest.HashOf([]byte("x"))
	if err := store.Put(t.Context(), "acme", hash, 1, strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, path := range []string{"link/x", "../x", "link"} {
		m := &manifest.Manifest{Files: []manifest.File{{Path: path, Size: 1, Hash: hash}}}
		if err := snapshot.Restore(t.Context(), store, "acme", root, m, snapshot.Limits{}); err == nil {
			t.Errorf("%s is restored", path)
		}
	}
	if left, _ := os.ReadDir(outside); len(left) != 0 {
		t.Errorf("files are outside: %v", left)
	}
}

// A claim that ends does not wait for a restore, nor does anything else of it.
func TestCloseEndsARestore(t *testing.T) {
	t.Parallel()
	store := &stuck{began: make(chan struct{})}
	first := claim(t, open(t, snapshot.Config{Store: store}), "c1")
	if err := first.Workspace(t.Context(), "").Write("a", []byte("content")); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f := claim(t, open(t, snapshot.Config{Dir: dir, Store: store}), "c2")
	ws, failed := f.Workspace(t.Context(), save(t, first).Hash), make(chan error, 1)
	go func() {
		_, err := ws.Read("a")
		failed <- err
	}()
	<-store.began
	if s := save(t, f); s != nil {
		t.Errorf("saved %+v", s)
	}
	if err := f.Close(false); err != nil {
		t.Error(err)
	}
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("the call whose files are restored: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".claims", "*", "*")); len(left) != 0 {
		t.Errorf("it leaves %v", left)
	}
}

// stuck is a store that answers no Get.
type stuck struct {
	snapshot.Memory
	began chan struct{}
}

func (s *stuck) Get(ctx context.Context, _, _ string, _ int64, _ io.Writer) error {
	close(s.began)
	<-ctx.Done()
	return context.Cause(ctx)
}
