package sandbox_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/sandbox"
)

// The numbers are those of the list of attacks that the file tools are held to.

// changes are all ways to change a workspace with a path, other than Write; bring is a file that may be moved.
func changes(w *sandbox.Workspace, bring string) map[string]func(name string) error {
	return map[string]func(string) error{
		"remove":    w.Remove,
		"make":      w.Mkdir,
		"move":      func(name string) error { return w.Move(name, "moved") },
		"move to":   func(name string) error { return w.Move(bring, name) },
		"edit":      func(name string) error { return w.Edit(name, func([]byte) ([]byte, error) { return []byte("x"), nil }) },
		"stat":      func(name string) error { _, err := w.Stat(name); return err },
		"write all": func(name string) error { return writeAll(w, "other", name) },
	}
}

func writeAll(w *sandbox.Workspace, names ...string) error {
	files := make([]sandbox.File, len(names))
	for i, name := range names {
		files[i] = sandbox.File{Name: name, Data: []byte("x")}
	}
	return w.WriteAll(context.Background(), files, nil)
}

func TestAttacks01To10OnChanges(t *testing.T) {
	for name, path := range map[string]string{
		"01 parent":              "../out/secret",
		"02 parent later":        "in/../../out/secret",
		"03 absolute":            "/etc/passwd",
		"03 absolute doubled":    "//etc/passwd",
		"04 parent inside":       "in/../in/file",
		"05 NUL":                 "in/file\x00",
		"06 empty":               "",
		"06 blank":               " \t",
		"07 long":                strings.Repeat("a/", 2048) + "b",
		"07 long part":           "in/" + strings.Repeat("n", 256),
		"08 not UTF-8":           "in/\xff",
		"09 control":             "in/\x1b[2J",
		"09 bidi":                "a\u202etxt.exe",
		"10 reserved":            ".longshore-tmp-a",
		"10 reserved on the way": ".longshore-tmp-a/b",
	} {
		t.Run(name, func(t *testing.T) {
			dir, ws := arena(t)
			w := open(t, ws, sandbox.Limits{})
			for op, do := range changes(w, "in/file") {
				err := do(path)
				pe, ok := errors.AsType[*sandbox.PathError](err)
				if !ok {
					t.Errorf("%s: error %T (%v), want a *PathError", op, err, err)
				} else if len(pe.Error()) > 400 || strings.ContainsAny(pe.Error(), "\x00\n\x1b\u202e") {
					t.Errorf("%s: the error is not one short clean line: %q", op, err)
				}
			}
			untouched(t, dir)
			if diff := cmp.Diff([]string{"in", "in/file"}, tree(t, ws)); diff != "" {
				t.Errorf("tree (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("10 encoded is a plain name", func(t *testing.T) {
		dir, ws := arena(t)
		w := open(t, ws, sandbox.Limits{})
		for _, name := range []string{"%2e%2e/out/secret", `..\out\secret`, "\u2025/out/secret"} {
			for _, err := range []error{writeAll(w, name), w.Move(name, "m"), w.Move("m", name), w.Remove(name), w.Mkdir(name)} {
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		untouched(t, dir)
	})
}

func TestAttacks11To15OnChanges(t *testing.T) {
	dir, ws := arena(t)
	for name, target := range map[string]string{
		"absolute": filepath.Join(dir, "out", "secret"), "relative": "../out/secret", "dangling": "../out/new", "loop": "loop",
		"proc": "/proc/self/root", "folder": "../out", "inside": "in/file",
	} {
		if err := os.Symlink(target, filepath.Join(ws, name)); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, ws)
	w := open(t, ws, sandbox.Limits{})
	for _, name := range []string{
		"absolute", "relative", "dangling", "loop", "proc", "folder", "inside", // 11, 12, 14, 15
		"folder/secret", "folder/new", "folder/new/deep", "proc/tmp/x", "loop/x", // 13 among them
	} {
		for op, do := range changes(w, "in/file") {
			if err := do(name); err == nil || !strings.Contains(err.Error(), "is a symbolic link") {
				t.Errorf("%s of %s: %v", op, name, err)
			}
		}
	}
	if diff := cmp.Diff(before, tree(t, ws)); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	untouched(t, dir)
}

// A folder is swapped for a link to the outside all the time; no change may ever get there.
func TestAttack16SwapRaceOnChanges(t *testing.T) {
	dir, ws := arena(t)
	w := open(t, ws, sandbox.Limits{Files: -1, Total: -1})
	name, folder, link := filepath.Join(ws, "d"), filepath.Join(ws, "real"), filepath.Join(ws, "link")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "out"), link); err != nil {
		t.Fatal(err)
	}
	var own int
	swapping(t, time.Second, func() error {
		return errors.Join(os.Rename(folder, name), os.Rename(name, folder), os.Rename(link, name), os.Rename(name, link))
	}, func() {
		// The folder is somewhere else at times; where it is looked for is never a link.
		if err := os.WriteFile(filepath.Join(folder, "secret"), []byte("own"), 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		mustWrite(t, filepath.Join(ws, "bring"), "own")
		for _, err := range []error{
			w.Edit("d/secret", func(old []byte) ([]byte, error) {
				if string(old) == secret {
					t.Error("read the secret")
				}
				return []byte("own"), nil
			}),
			w.Move("bring", "d/new"), w.Move("d/secret", "taken"), w.Remove("d/secret"), w.Mkdir("d/made"), writeAll(w, "d/1", "d/2"),
		} {
			if err == nil {
				own++
			}
		}
		if got, err := w.Read("taken"); err == nil && string(got) == secret {
			t.Error("moved the secret in")
		}
		_ = w.Remove("taken")
		_ = w.Remove("d/new")
	})
	t.Logf("%d changes met the folder", own)
	untouched(t, dir)
}

// Nothing is moved into or out of the workspace, by its name or through a link. There is no way to make a link.
func TestAttack17MovesAcrossTheEdge(t *testing.T) {
	dir, ws := arena(t)
	for name, target := range map[string]string{"out": "../out", "away": filepath.Join(dir, "out")} {
		if err := os.Symlink(target, filepath.Join(ws, name)); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, ws)
	w := open(t, ws, sandbox.Limits{})
	for from, to := range map[string]string{
		"in/file": "../out/taken", "../out/secret": "taken", "out/secret": "in/taken", "away/secret": "in/given",
		"in/../in/file": "out/taken", "/etc/hostname": "hostname", filepath.Join(dir, "out", "secret"): "mine",
	} {
		if err := w.Move(from, to); err == nil {
			t.Errorf("%s was moved to %s", from, to)
		}
	}
	for _, to := range []string{"out/taken", "away/taken", "out", filepath.Join(dir, "out", "taken")} {
		if err := w.Move("in/file", to); err == nil {
			t.Errorf("a file was moved to %s", to)
		}
	}
	untouched(t, dir)
	if diff := cmp.Diff(before, tree(t, ws)); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

func TestAttack18HardLinkOnChanges(t *testing.T) {
	dir, ws := arena(t)
	if err := os.Link(filepath.Join(dir, "out", "secret"), filepath.Join(ws, "linked")); err != nil {
		t.Fatal(err)
	}
	w := open(t, ws, sandbox.Limits{FileSize: 4}) // the secret is longer, which must not let it pass
	for _, op := range []string{"remove", "move", "edit", "stat", "write all"} {
		wantPathError(t, changes(w, "in/file")[op]("linked"), "linked: has more than one name (a hard link)")
	}
	wantPathError(t, w.Write("linked", []byte("x")), "linked: has more than one name (a hard link)")
	wantPathError(t, w.Move("in/file", "linked"), "linked: exists already")
	wantPathError(t, w.Mkdir("linked"), "linked: exists already and is not a folder")
	untouched(t, dir)
}

// 19 is tried where the test may mount; 17, a rename or link that crosses the root, is among 1 to 16.
func TestAttack19MountOnChanges(t *testing.T) {
	dir, ws := arena(t)
	at := filepath.Join(ws, "mounted")
	if err := os.Mkdir(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := mountTemp(at); err != nil {
		t.Logf("a mount is not tried: %v", err)
		return
	}
	defer func() {
		if err := unmount(at); err != nil {
			t.Error(err)
		}
	}()
	mustWrite(t, filepath.Join(at, "file"), "of the mount")
	w := open(t, ws, sandbox.Limits{})
	for op, do := range changes(w, "in/file") {
		for _, name := range []string{"mounted/file", "mounted/new"} {
			if err := do(name); err == nil || !strings.Contains(err.Error(), "is on another file system") {
				t.Errorf("%s of %s: %v", op, name, err)
			}
		}
	}
	for op, err := range map[string]error{"remove": w.Remove("mounted"), "make": w.Mkdir("mounted")} {
		if err == nil || err.Error() != "mounted: is on another file system" {
			t.Errorf("%s: %v", op, err)
		}
	}
	untouched(t, dir)
}

func TestAttack20NothingIsRemovedWithItsContent(t *testing.T) {
	dir, ws := arena(t)
	w := open(t, ws, sandbox.Limits{})
	for path, want := range map[string]string{
		".": ".: is a folder", "./.": "./.: is a folder", "in/..": "in/..: must stay inside the workspace", "..": "..: must stay inside the workspace",
		"in": "in: is a folder that is not empty",
	} {
		wantPathError(t, w.Remove(path), want)
	}
	if diff := cmp.Diff([]string{"in", "in/file"}, tree(t, ws)); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	untouched(t, dir)
	for _, path := range []string{"in/file", "in"} {
		if err := w.Remove(path); err != nil {
			t.Error(err)
		}
	}
	wantPathError(t, w.Remove("in"), "in: does not exist")
}

func TestAttacks21To23OnChanges(t *testing.T) {
	t.Run("21 workspace of another run", func(t *testing.T) {
		dir := t.TempDir()
		all, err := sandbox.NewWorkspaces(dir, sandbox.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		defer all.Close()
		for _, run := range []string{"a", "b"} {
			w, err := all.Open(messages.Ref{Tenant: "t", Run: run})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			write(t, w, "own", run)
			if run == "a" {
				continue
			}
			for op, do := range changes(w, "own") {
				for _, name := range []string{"../a/own", "/" + filepath.Join(dir, "t", "a", "own")} {
					if err := do(name); err == nil {
						t.Errorf("%s of %s was let", op, name)
					}
				}
			}
		}
		if diff := cmp.Diff([]string{"t", "t/a", "t/a/own", "t/b", "t/b/own"}, tree(t, dir)); diff != "" {
			t.Errorf("tree (-want +got):\n%s", diff)
		}
	})
	t.Run("22 workspace replaced after open", func(t *testing.T) {
		dir, ws := arena(t)
		w := open(t, ws, sandbox.Limits{})
		if err := errors.Join(os.Rename(ws, filepath.Join(dir, "out", "old")), os.Symlink(filepath.Join(dir, "out"), ws)); err != nil {
			t.Fatal(err)
		}
		for op, do := range changes(w, "in/file") { // what succeeds continues in the old folder
			t.Logf("%s: %v", op, do("secret"))
		}
		if got, err := os.ReadFile(filepath.Join(dir, "out", "secret")); err != nil || string(got) != secret {
			t.Errorf("the secret is now %q, %v", got, err)
		}
	})
	t.Run("23 files that other programs run", func(t *testing.T) {
		_, ws := arena(t)
		w := open(t, ws, sandbox.Limits{})
		if err := writeAll(w, ".git/hooks/pre-commit", ".ssh/config", ".bashrc"); err != nil {
			t.Error(err) // they are files as any other: nothing of ours runs them
		}
	})
}

func TestAttacks24To26OnChanges(t *testing.T) {
	_, ws := arena(t)
	w := open(t, ws, sandbox.Limits{})
	specials := map[string]func(path string) error{
		"pipe":   func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"socket": func(p string) error { return listenUnix(t, p) },
	}
	if os.Geteuid() == 0 {
		specials["null"] = func(p string) error { return syscall.Mknod(p, syscall.S_IFCHR|0o600, 1<<8|3) }
	}
	for name, create := range specials {
		if err := create(filepath.Join(ws, name)); err != nil {
			if name == "null" {
				t.Logf("%s is not tried: %v", name, err)
				continue
			}
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for op, do := range changes(w, "in/file") {
				want := name + ": is not a regular file"
				switch op {
				case "make":
					want = name + ": exists already and is not a folder"
				case "move to":
					want = name + ": exists already"
				}
				if err := do(name); err == nil || err.Error() != want {
					t.Errorf("%s: %v, want %s", op, err, want)
				}
			}
		}()
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			t.Fatalf("%s: still blocked after 30 s", name)
		}
	}
}

func TestAttacks27And28LargeFiles(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, sandbox.Limits{FileSize: 1000, Total: -1})
	f, err := os.Create(filepath.Join(dir, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(1 << 40); err != nil {
		t.Fatal(err)
	}
	wantPathError(t, changes(w, "")["edit"]("sparse"), "sparse: is larger than 1000 bytes")
	wantPathError(t, changes(w, "")["stat"]("sparse"), "sparse: is larger than 1000 bytes")
	if err := w.Move("sparse", "still sparse"); err != nil { // which costs nothing
		t.Error(err)
	}
	if err := w.Remove("still sparse"); err != nil {
		t.Error(err)
	}
	// 28: a file that grows while it is read is read to the limit alone.
	growing, err := os.Create(filepath.Join(dir, "growing"))
	if err != nil {
		t.Fatal(err)
	}
	defer growing.Close()
	swapping(t, 200*time.Millisecond, func() error {
		_, err := growing.Write(make([]byte, 100))
		return errors.Join(err, growing.Truncate(100))
	}, func() {
		err := w.Edit("growing", func(old []byte) ([]byte, error) {
			if len(old) > 1000 {
				t.Errorf("read %d bytes", len(old))
			}
			return nil, errors.New("leave it")
		})
		if _, ok := errors.AsType[*sandbox.PathError](err); !ok && err.Error() != "leave it" {
			t.Error(err)
		}
	})
}

func TestAttacks29To31Quotas(t *testing.T) {
	dir := t.TempDir()
	w := open(t, dir, sandbox.Limits{Files: 6, Total: 10, FileSize: 8, Depth: 4})
	write(t, w, "a", "1234")
	full := ": the workspace is full: "
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"29 deep folder":      {w.Mkdir("1/2/3/4"), "1/2/3/4: a folder must not have more than 3 parts"},
		"29 deeper folder":    {w.Mkdir("1/2/3/4/5"), "1/2/3/4/5: must not have more than 4 parts"},
		"29 folders and file": {writeAll(w, "1/a", "2/a", "3/a"), "3/a" + full + "it may have 6 files and folders, 4 deep"},
		"30 many files":       {writeAll(w, "b", "c", "d", "a", "e", "f", "g"), "g" + full + "it may have 6 files and folders, 4 deep"},
		"30 one file": {
			w.WriteAll(t.Context(), []sandbox.File{{Name: "b"}, {Name: "c", Data: make([]byte, 9)}}, nil),
			"c: the content has 9 bytes, and a file may have 8",
		},
		"30 all bytes": {
			w.WriteAll(t.Context(), []sandbox.File{{Name: "b", Data: make([]byte, 4)}, {Name: "c", Data: make([]byte, 4)}}, nil),
			"c" + full + "all files together may have 10 bytes",
		},
		"31 newline": {writeAll(w, "b", "c\nd"), `"c\nd": must not contain control characters`},
	} {
		if c.err == nil || c.err.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, c.err, c.want)
		}
	}
	if diff := cmp.Diff([]string{"a"}, tree(t, dir)); diff != "" {
		t.Errorf("refused changes left something (-want +got):\n%s", diff)
	}
	// A file that is replaced gives its bytes back, also to the others.
	if err := w.WriteAll(t.Context(), []sandbox.File{{Name: "b", Data: make([]byte, 8)}, {Name: "a", Data: []byte("1")}}, nil); err != nil {
		t.Error(err)
	}
	if err := w.Mkdir("1/2/3"); err != nil { // the deepest that there may be does not fill the workspace
		t.Fatal(err)
	}
	write(t, w, "a", "2")
	if err := w.Move("a", "1/a"); err != nil {
		t.Error(err)
	}
	wantPathError(t, w.Move("b", "4/5/b"), "4/5/b"+full+"it may have 6 files and folders, 4 deep")
	wantPathError(t, w.Mkdir("4/5"), "4/5"+full+"it may have 6 files and folders, 4 deep")
	if diff := cmp.Diff([]string{"1", "1/2", "1/2/3", "1/a", "b"}, tree(t, dir)); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}
