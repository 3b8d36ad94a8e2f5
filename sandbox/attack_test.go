package sandbox_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/sandbox"
)

const secret = "the neighbour's secret"

// arena is a workspace beside a secret: <dir>/ws and <dir>/out/secret.
func arena(tb testing.TB) (dir, ws string) {
	tb.Helper()
	dir = tb.TempDir()
	ws = filepath.Join(dir, "ws")
	for _, d := range []string{ws, filepath.Join(dir, "out"), filepath.Join(ws, "in")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			tb.Fatal(err)
		}
	}
	for path, content := range map[string]string{
		filepath.Join(dir, "out", "secret"): secret, filepath.Join(ws, "in", "file"): "own",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return dir, ws
}

// untouched checks that what lies outside is as arena left it.
func untouched(tb testing.TB, dir string) {
	tb.Helper()
	got, err := os.ReadFile(filepath.Join(dir, "out", "secret"))
	if err != nil || string(got) != secret {
		tb.Errorf("the secret is now %q, %v", got, err)
	}
	for _, d := range []string{dir, filepath.Join(dir, "out")} {
		entries, err := os.ReadDir(d)
		if err != nil {
			tb.Fatal(err)
		}
		for _, e := range entries {
			if n := e.Name(); n != "ws" && n != "out" && n != "secret" {
				tb.Errorf("%s appeared outside", n)
			}
		}
	}
}

// Attacks 1 to 9 on reading and writing; attackchanges_test.go has the other changes.
func TestAttacks01To09RefusedPaths(t *testing.T) {
	dir, ws := arena(t)
	w := open(t, ws, sandbox.Limits{})
	inside := "must stay inside the workspace"
	plain := `must be a plain path such as notes/a.txt, without empty or "." parts`
	relative := `must be relative to the workspace, without a leading "/"`
	control := "must not contain control characters"
	for name, c := range map[string]struct{ path, want string }{
		"06 empty":              {"", `"": must not be empty; name a file such as notes/a.txt`},
		"06 blank":              {" ", `" ": must not be empty; name a file such as notes/a.txt`},
		"20 dot":                {".", ".: is a folder"},
		"04 parent":             {"..", "..: " + inside},
		"01 leaving":            {"../out/secret", "../out/secret: " + inside},
		"02 leaving later":      {"in/../../out/secret", "in/../../out/secret: " + inside},
		"04 parent but inside":  {"in/../in/file", "in/../in/file: " + inside},
		"01 parent after dot":   {"./../out/secret", "./../out/secret: " + inside},
		"04 parent at the end":  {"in/..", "in/..: " + inside},
		"03 absolute":           {"/etc/passwd", "/etc/passwd: " + relative},
		"03 absolute, doubled":  {"//etc/passwd", "//etc/passwd: " + relative},
		"03 absolute after dot": {".//etc/passwd", ".//etc/passwd: " + plain},
		"doubled slash":         {"in//file", "in//file: " + plain},
		"slash at the end":      {"in/file/", "in/file/: " + plain},
		"dot inside":            {"in/./file", "in/./file: " + plain},
		"05 NUL":                {"in/file\x00.txt", `"in/file\x00.txt": ` + control},
		"09 newline":            {"in/fi\nle", `"in/fi\nle": ` + control},
		"09 escape":             {"\x1b[2J", `"\x1b[2J": ` + control},
		"09 right to left":      {"a\u202etxt.exe", `"a\u202etxt.exe": ` + control},
		"08 not UTF-8":          {"in/\xff", `"in/\xff": must be UTF-8 text`},
		"07 very long": {
			strings.Repeat("a/", 2048) + "b",
			strings.Repeat("a/", 100) + "…: must not be longer than 4096 bytes",
		},
		"29 very deep": {strings.Repeat("a/", 40) + "b", strings.Repeat("a/", 40) + "b: must not have more than 32 parts"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.Read(c.path)
			wantPathError(t, err, c.want)
			wantPathError(t, w.Write(c.path, []byte("x")), c.want)
		})
	}
	untouched(t, dir)
	if diff := cmp.Diff([]string{"in", "in/file"}, tree(t, ws)); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

func TestAttack10EncodedPathsAreJustNames(t *testing.T) {
	dir, ws := arena(t)
	w := open(t, ws, sandbox.Limits{})
	for _, name := range []string{"%2e%2e/out/secret", "%2fetc%2fpasswd", `..\out\secret`, "\u2025/out/secret", "~/secret", "$HOME"} {
		_, err := w.Read(name)
		wantPathError(t, err, name+": does not exist")
	}
	untouched(t, dir)
}

func TestAttacks11To15SymbolicLinks(t *testing.T) {
	dir, ws := arena(t)
	for name, target := range map[string]string{
		"absolute": filepath.Join(dir, "out", "secret"), "relative": "../out/secret", "folder": "../out",
		"dangling": "../out/new", "loop": "loop", "ping": "pong", "pong": "ping", "inside": "in/file", "infolder": "in",
		"absolutely inside": filepath.Join(ws, "in", "file"), "proc": "/proc/self/root", "self": ".",
	} {
		if err := os.Symlink(target, filepath.Join(ws, name)); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, ws)
	w := open(t, ws, sandbox.Limits{})
	for _, name := range []string{
		"absolute", "relative", "dangling", "loop", "ping", "inside", "absolutely inside", "proc", "folder", "self",
	} {
		_, err := w.Read(name)
		wantPathError(t, err, name+": is a symbolic link")
		wantPathError(t, w.Write(name, []byte("x")), name+": is a symbolic link")
	}
	for _, name := range []string{"folder/secret", "folder/new", "infolder/file", "proc/etc/passwd", "self/in/file", "loop/x"} {
		first, _, _ := strings.Cut(name, "/")
		_, err := w.Read(name)
		wantPathError(t, err, name+": "+first+" is a symbolic link")
		wantPathError(t, w.Write(name, []byte("x")), name+": "+first+" is a symbolic link")
	}
	if diff := cmp.Diff([]string{"in/file"}, list(t, w)); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, tree(t, ws)); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	untouched(t, dir)
}

func TestAttack18HardLinkToOutside(t *testing.T) {
	dir, ws := arena(t)
	if err := os.Link(filepath.Join(dir, "out", "secret"), filepath.Join(ws, "linked")); err != nil {
		t.Fatal(err)
	}
	w := open(t, ws, sandbox.Limits{})
	_, err := w.Read("linked")
	wantPathError(t, err, "linked: has more than one name (a hard link)")
	wantPathError(t, w.Write("linked", []byte("x")), "linked: has more than one name (a hard link)")
	untouched(t, dir)
}

func TestAttacks24To26PipesSocketsAndDevices(t *testing.T) {
	_, ws := arena(t)
	w := open(t, ws, sandbox.Limits{})
	specials := map[string]func(path string) error{
		"pipe":   func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"socket": func(p string) error { return listenUnix(t, p) },
	}
	if os.Geteuid() == 0 { // only root may make them
		specials["null"] = func(p string) error { return syscall.Mknod(p, syscall.S_IFCHR|0o600, 1<<8|3) }
		specials["disk"] = func(p string) error { return syscall.Mknod(p, syscall.S_IFBLK|0o600, 7<<8) }
	}
	for name, create := range specials {
		if err := create(filepath.Join(ws, name)); err != nil {
			if name == "null" || name == "disk" {
				t.Logf("%s is not tried: %v", name, err) // a container without the right to make devices
				continue
			}
			t.Fatal(err)
		}
		done := make(chan [2]error, 1)
		go func() {
			_, err := w.Read(name)
			done <- [2]error{err, w.Write(name, []byte("x"))}
		}()
		select {
		case errs := <-done:
			wantPathError(t, errs[0], name+": is not a regular file")
			wantPathError(t, errs[1], name+": is not a regular file")
		case <-time.After(30 * time.Second):
			t.Fatalf("%s: still blocked after 30 s", name)
		}
	}
	if diff := cmp.Diff([]string{"in/file"}, list(t, w)); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
}

func listenUnix(t *testing.T, path string) error {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	return syscall.Bind(fd, &syscall.SockaddrUnix{Name: path})
}

// A pipe that takes a file's place between look and open must not block either.
func TestAttack24PipeSwappedIn(t *testing.T) {
	_, ws := arena(t)
	w := open(t, ws, sandbox.Limits{})
	file, pipe, name := filepath.Join(ws, "f"), filepath.Join(ws, "p"), filepath.Join(ws, "x")
	mustWrite(t, file, "text")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	swapping(t, 300*time.Millisecond, func() error {
		// One of the two is moved over the other name and back, so that x is now a file, now a pipe.
		return errors.Join(os.Rename(file, name), os.Rename(name, file), os.Rename(pipe, name), os.Rename(name, pipe))
	}, func() {
		data, err := w.Read("x")
		if err == nil && string(data) != "text" {
			t.Errorf("read %q", data)
		}
	})
}

// A folder is swapped for a link to the outside all the time; no read, write or list may ever get there.
func TestAttack16SwapRace(t *testing.T) {
	dir, ws := arena(t)
	w := open(t, ws, sandbox.Limits{})
	name, folder, link := filepath.Join(ws, "d"), filepath.Join(ws, "real"), filepath.Join(ws, "link")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, filepath.Join(folder, "secret"), "own")
	if err := os.Symlink(filepath.Join(dir, "out"), link); err != nil {
		t.Fatal(err)
	}
	var own int
	swapping(t, time.Second, func() error {
		return errors.Join(os.Rename(folder, name), os.Rename(name, folder), os.Rename(link, name), os.Rename(name, link))
	}, func() {
		switch data, err := w.Read("d/secret"); {
		case bytes.Equal(data, []byte(secret)):
			t.Error("read the secret")
		case err == nil:
			own++
		}
		_ = w.Write("d/secret", []byte("own"))
		_ = w.Write("d/new", []byte("own"))
		names, err := w.List(t.Context())
		if err != nil {
			t.Error(err)
		}
		for _, n := range names {
			if n == "link/secret" {
				t.Error("listed the outside")
			}
		}
	})
	t.Logf("%d reads met the folder", own)
	untouched(t, dir)
}

// swapping calls attack again and again while work runs in a loop, for the time d.
func swapping(t *testing.T, d time.Duration, attack func() error, work func()) {
	t.Helper()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = attack()
			}
		}
	})
	for end := time.Now().Add(d); time.Now().Before(end) && !t.Failed(); {
		work()
	}
	close(stop)
	wg.Wait()
}

func TestAttack31ListOfOddNames(t *testing.T) {
	_, ws := arena(t)
	mustWrite(t, filepath.Join(ws, "two\nlines"), "")
	mustWrite(t, filepath.Join(ws, "\xff"), "")
	w := open(t, ws, sandbox.Limits{})
	if diff := cmp.Diff([]string{"in/file", "two\nlines", "\xff"}, list(t, w)); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
}

func TestErrorsShowNoHostPath(t *testing.T) {
	dir, ws := arena(t)
	w := open(t, ws, sandbox.Limits{})
	if err := os.Chmod(filepath.Join(ws, "in"), 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Join(ws, "in"), 0o700)
	errs := []error{w.Write("in", nil), w.Write("in/file/x", nil)}
	for _, name := range []string{"in", "in/file", "nothing", dir, "in/file/x"} {
		_, err := w.Read(name)
		errs = append(errs, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := w.Read("in/file")
	_, listErr := w.List(t.Context())
	errs = append(errs, err, listErr, w.Write("in/file", nil))
	for _, err := range errs {
		if err != nil && strings.Contains(strings.TrimPrefix(err.Error(), dir), ws) {
			t.Errorf("%v shows the host's path", err)
		}
	}
}

func FuzzWorkspacePath(f *testing.F) {
	for _, s := range []string{
		"a", "in/file", "../out/secret", "in/../../out/secret", "/etc/passwd", "./a", "link/secret", "hard", "pipe",
		"in", ".", "", "\x00", "a/b/c/d", strings.Repeat("x/", 50), "%2e%2e/x", "\u202e", ".longshore-tmp-x", "a//b",
	} {
		f.Add(s, []byte("content"))
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		dir, ws := arena(t)
		if err := errors.Join(
			os.Symlink("../out", filepath.Join(ws, "link")),
			os.Link(filepath.Join(dir, "out", "secret"), filepath.Join(ws, "hard")),
			syscall.Mkfifo(filepath.Join(ws, "pipe"), 0o600),
		); err != nil {
			t.Fatal(err)
		}
		w := open(t, ws, sandbox.Limits{FileSize: 1000})
		got, err := w.Read(name)
		if err == nil && string(got) != "own" {
			t.Fatalf("read %q", got)
		}
		if err := w.Write(name, data); err == nil {
			got, err := w.Read(name)
			if err != nil || !bytes.Equal(got, data) {
				t.Fatalf("wrote %q, read %q, %v", data, got, err)
			}
		} else if strings.ContainsAny(err.Error(), "\x00\n\x1b") {
			t.Fatalf("the error is not one clean line: %q", err)
		}
		list(t, w)
		untouched(t, dir)
	})
}
