//go:build amd64 || arm64

package process_test

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/sandbox/process"
)

// The attacks are numbered in docs/sandbox.md. Each runs in both modes, as the user of the tests; TestAttacksAsAnotherUser and
// TestAttacksWithoutNamespaces run all of them again.
func TestAttacks(t *testing.T) {
	if mode := os.Getenv(modeVariable); mode != "" { // by one of the tests that run this one again
		a := newArena(t, process.Config{})
		if a.mode != mode {
			t.Fatalf("programs are confined by %s, want the mode %s", a.Layers(), mode)
		}
		a.attacks(t)
		return
	}
	t.Run("namespaces", func(t *testing.T) {
		counts(t)
		newArena(t, process.Config{Require: process.LayerNamespaces}).attacks(t)
	})
	t.Run("landlock", func(t *testing.T) {
		if os.Geteuid() == 0 { // what user 0 may then is refused, which TestUserZeroNeedsNamespaces shows
			return
		}
		counts(t)
		newArena(t, process.Config{NoNamespaces: true}).attacks(t)
	})
}

func (a *arena) attacks(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(*arena, *testing.T)
	}{
		{"32 environment", (*arena).environment},
		{"33 files of the worker in proc", func(a *arena, t *testing.T) {
			proc := "/proc/" + strconv.Itoa(os.Getpid()) + "/"
			var paths []string
			for _, name := range []string{"environ", "cmdline", "mem", "maps", "fd", "cwd", "root", "root/etc/passwd"} {
				paths = append(paths, proc+name)
			}
			wantBlocked(t, a.attack(t, "files", paths...), "ENOENT", "EACCES", "EPERM", "EISDIR")
		}},
		{"34 first process", func(a *arena, t *testing.T) {
			got := a.attack(t, "files", "/proc/1/environ", "/proc/1/mem", "/proc/1/root/etc/shadow", "/proc/1/cwd")
			wantBlocked(t, got, "ENOENT", "EACCES", "EPERM", "EROFS", "EISDIR")
		}},
		{"35 leaked files", (*arena).leakedFiles},
		{"37 core dumps", func(a *arena, t *testing.T) {
			if diff := cmp.Diff(map[string]string{"core": "0 0"}, a.attack(t, "core")); diff != "" {
				t.Error(diff)
			}
		}},
		{"38 secrets in errors", (*arena).secretsInErrors},
		{"39 credentials of the machine", func(a *arena, t *testing.T) {
			wantBlocked(t, a.attack(t, "files", "/var/run/secrets/kubernetes.io/serviceaccount/token", "/var/run/docker.sock", "/run", "/root/.aws/credentials",
				"/root", "/home", "/etc/shadow", "/etc/ssh"), "ENOENT", "EACCES", "EISDIR")
		}},
		{"40 readable configuration", func(a *arena, t *testing.T) {
			wantBlocked(t, a.attack(t, "files", a.canary, a.dir), "ENOENT", "EACCES", "EISDIR")
		}},
		{"41 other folders of the machine", func(a *arena, t *testing.T) {
			shared := filepath.Join("/dev/shm", "canary-"+rand.Text()) // not the folder: the tests themselves may be in it
			if err := os.WriteFile(shared, []byte(canaryText), 0o644); err != nil {
				t.Fatal(err)
			}
			defer os.Remove(shared)
			wantBlocked(t, a.attack(t, "files", "/sys", "/sys/kernel", shared, "/dev/mem", "/dev/kmsg", "/var/tmp", "/var", "/tmp/.X11-unix", filepath.Dir(a.dir)),
				"ENOENT", "EACCES", "EISDIR")
		}},
		{"42 existence of files", func(a *arena, t *testing.T) {
			want := map[string]string{"stat": by(a, "ENOENT", "ok")} // without namespaces it is seen, which docs/sandbox.md says
			if diff := cmp.Diff(want, a.attack(t, "stat")); diff != "" {
				t.Error(diff)
			}
		}},
		{"43 fork bomb", (*arena).forkBomb},
		{"44 private memory", func(a *arena, t *testing.T) { a.memory(t, "private", process.Limits{Memory: 128 << 20}, 128) }},
		{"45 shared memory", (*arena).sharedMemory},
		{"46 busy loop", (*arena).busyLoop},
		{"47 SIGTERM ignored", (*arena).stubborn},
		{"48 flood of output", func(a *arena, t *testing.T) { a.flood(t, "yes", nil) }},
		{"49 endless line", func(a *arena, t *testing.T) { a.flood(t, "cat", []string{"/dev/zero"}) }},
		{"50 child that holds the output", func(a *arena, t *testing.T) {
			began := time.Now()
			r := a.run(t, process.Command{Path: "sh", Args: []string{"-c", "sleep 60 & echo done"}, Workspace: a.ws})
			if string(r.Stdout) != "done\n" || r.Reason != process.Exited || time.Since(began) > 20*time.Second {
				t.Errorf("%+v after %s", r, time.Since(began))
			}
		}},
		{"51 daemon", func(a *arena, t *testing.T) {
			want := map[string]string{"fork": "ok", "setsid": by(a, "", "EPERM")}
			if diff := cmp.Diff(want, a.attack(t, "daemon")); diff != "" {
				t.Error(diff)
			}
		}},
		{"52 zombies", func(a *arena, t *testing.T) {
			if got := a.attack(t, "forks", "50", "end"); got["forks"] != "50" {
				t.Errorf("%v", got)
			}
		}},
		{"53 disk", (*arena).disk},
		{"54 open files", func(a *arena, t *testing.T) {
			got := a.attack(t, "open")
			if n, _ := strconv.Atoi(got["files"]); n > 256 || got["open"] != "EMFILE" {
				t.Errorf("%v", got)
			}
		}},
		{"55 input", (*arena).input},
		{"57 own limits", func(a *arena, t *testing.T) { wantBlocked(t, a.attack(t, "rlimit"), "EPERM") }},
		{"59 to 61 reach for the worker", func(a *arena, t *testing.T) {
			wantBlocked(t, a.attack(t, "worker"), "EPERM", "ESRCH", "EBADF")
		}},
		{"62 files outside", (*arena).metadata},
		{"63 namespaces", func(a *arena, t *testing.T) { wantBlocked(t, a.attack(t, "namespaces"), "EPERM", "ENOSYS") }},
		{"64 mounts", func(a *arena, t *testing.T) { wantBlocked(t, a.attack(t, "mounts"), "EPERM") }},
		{"65 other architectures", (*arena).architectures},
		{"66 kernel interfaces", func(a *arena, t *testing.T) { wantBlocked(t, a.attack(t, "kernel"), "EPERM") }},
		{"67 set-user-id program", (*arena).setuid},
		{"68 terminal", func(a *arena, t *testing.T) {
			wantBlocked(t, a.attack(t, "tty"), "EPERM", "ENOENT", "EACCES", "ENXIO")
		}},
		{"69 devices", func(a *arena, t *testing.T) { wantBlocked(t, a.attack(t, "mknod"), "EPERM") }},
		{"70 settings of the kernel", func(a *arena, t *testing.T) {
			got := a.attack(t, "files", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/kernel/pid_max", "/sys/kernel/uevent_helper")
			for attempt, result := range got {
				if strings.HasPrefix(attempt, "write") && result == "ok" {
					t.Errorf("%s: ok", attempt)
				}
			}
		}},
		{"71 variables that change programs", func(a *arena, t *testing.T) {
			for _, name := range []string{"LD_PRELOAD", "BASH_ENV", "ENV", "GIT_DIR", "PYTHONSTARTUP"} {
				t.Setenv(name, "/nonexistent")
			}
			a.environment(t)
		}},
		{"72 arguments", func(a *arena, t *testing.T) {
			args := []string{"-rf", "--", "$(id)", "; true", "*", "`id`", "", "\n", "a b"}
			if got := a.attack(t, "args", args...)["args"]; got != strings.Join(args, "|") {
				t.Errorf("got %q", got)
			}
		}},
		{"74 lock-down that fails", (*arena).failedLockDown},
		{"75 sockets", func(a *arena, t *testing.T) { wantBlocked(t, a.attack(t, "sockets"), "EPERM") }},
		{"76 Unix sockets", func(a *arena, t *testing.T) {
			if got := a.attack(t, "sockets"); got["unix"] != "EPERM" {
				t.Errorf("%v", got)
			}
		}},
		{"77 pair of sockets", func(a *arena, t *testing.T) {
			if diff := cmp.Diff(map[string]string{"socketpair": "ok", "write": "ok"}, a.attack(t, "socketpair")); diff != "" {
				t.Error(diff)
			}
		}},
		{"78 files through sockets", func(a *arena, t *testing.T) {
			got := a.attack(t, "fds")
			for fd := range 3 {
				if name := "socket " + strconv.Itoa(fd); got[name] != "ENOTSOCK" {
					t.Errorf("%s: %s", name, got[name])
				}
			}
		}},
		{"79 network with a proxy", (*arena).proxy},
	} {
		t.Run(test.name, func(t *testing.T) {
			counts(t)
			test.do(a, t)
			if text, err := os.ReadFile(a.canary); err != nil || string(text) != canaryText {
				t.Errorf("the file outside is %q, %v", text, err)
			}
			if left, err := os.ReadDir(filepath.Join(a.dir, "temp")); err != nil || len(left) > 0 {
				t.Errorf("temporary folders are left: %v, %v", left, err)
			}
		})
	}
}

func (a *arena) environment(t *testing.T) {
	t.Setenv("LONGSHORE_TEST_SECRET", canaryText)
	r := a.run(t, process.Command{Path: "env", Env: []string{"GIVEN=yes"}})
	var names []string
	for line := range strings.Lines(string(r.Stdout)) {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	if diff := cmp.Diff([]string{"GIVEN", "HOME", "LANG", "PATH", "TMPDIR"}, names); diff != "" {
		t.Error(diff)
	}
}

func (a *arena) leakedFiles(t *testing.T) {
	f, err := os.Open(a.canary)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	inherit(t, f)
	for name, result := range a.attack(t, "fds") {
		if strings.HasPrefix(result, "open") {
			t.Errorf("file %s is %s", name, result)
		}
	}
}

func (a *arena) secretsInErrors(t *testing.T) {
	for _, c := range []process.Command{
		{Path: "missing", Env: []string{"TOKEN=" + canaryText}, Stdin: []byte(canaryText)},
		{Path: "/missing", Env: []string{"TOKEN=" + canaryText}, Stdin: []byte(canaryText)},
		{Path: "true", Env: []string{canaryText + "\x00"}},
		{Path: "true", Args: []string{canaryText + "\x00"}},
	} {
		_, err := a.Run(t.Context(), c)
		if _, ok := errors.AsType[*process.CommandError](err); !ok || strings.Contains(err.Error(), canaryText) {
			t.Errorf("%q: %v", c.Path, err)
		}
	}
}

func (a *arena) forkBomb(t *testing.T) {
	if !a.Layers().Has(process.LayerProcesses) {
		c, _ := a.command("forks", "400", "stay")
		c.Require = process.LayerProcesses
		_, err := a.Run(t.Context(), c)
		if u, ok := errors.AsType[*process.UnavailableError](err); !ok || u.Missing != process.LayerProcesses {
			t.Errorf("a command that needs a limit of processes got %v", err)
		}
	}
	got := a.attack(t, "forks", "400", "stay") // all of them are killed in the end
	n, err := strconv.Atoi(got["forks"])
	if err != nil || n == 0 {
		t.Errorf("%v", got)
	}
	switch {
	case a.Layers().Has(process.LayerProcesses):
		if n > 64+16 || got["fork"] != "EAGAIN" {
			t.Errorf("%d processes, %s", n, got["fork"])
		}
	case a.mode == "namespaces": // of a worker that is user 0: by the numbers of the namespace, where the kernel bounds them
		t.Logf("%d processes, %s", n, got["fork"])
	}
}

func (a *arena) memory(t *testing.T, kind string, l process.Limits, most int) {
	t.Helper()
	c, _ := a.command("memory", kind)
	c.Limits = l
	got := decode(t, a.run(t, c))
	if mb, err := strconv.Atoi(got["mb"]); err != nil || mb > most || got["mmap"] != "ENOMEM" {
		t.Errorf("%v", got)
	}
	if got["memfd"] != "EPERM" || got["shmget"] != "EPERM" || got["mq_open"] != "EPERM" {
		t.Errorf("%v", got)
	}
}

func (a *arena) sharedMemory(t *testing.T) {
	a.memory(t, "shared", process.Limits{AddressSpace: 2 << 30}, 2048)
	c, _ := a.command("fill", "$TMPDIR", "65536", "100")
	c.Limits = process.Limits{Temp: 1 << 20}
	r := a.run(t, c)
	if got := decode(t, r); by(a, got["write"] != "ENOSPC", r.Reason != process.DiskLimit) {
		t.Errorf("%v, %s", got, r.Reason)
	}
}

func (a *arena) busyLoop(t *testing.T) {
	c, token := a.command("spin")
	c.Limits = process.Limits{CPU: time.Second, Wall: 2 * time.Minute} // of which it may get little
	if r := a.run(t, c); r.Reason != process.CPULimit || r.ExitCode != -1 || r.Usage.CPU < 900*time.Millisecond {
		t.Errorf("%+v", r)
	}
	c.Limits = process.Limits{Wall: 50 * time.Millisecond}
	if r := a.run(t, c); r.Reason != process.Timeout {
		t.Errorf("%+v", r)
	}
	wantGone(t, token)
}

func (a *arena) stubborn(t *testing.T) {
	c, token := a.command("stubborn")
	c.Limits = process.Limits{Wall: 2 * time.Second, Grace: 50 * time.Millisecond}
	r := a.run(t, c)
	if r.Reason != process.Timeout || r.Signal != "SIGKILL" || string(r.Stdout) != "ignoring\n" {
		t.Errorf("%+v %s", r, r.Stdout)
	}
	wantGone(t, token)
	c, _ = a.command("sleep")
	c.Limits = process.Limits{Wall: time.Second, Grace: 20 * time.Second}
	if r := a.run(t, c); r.Reason != process.Timeout || r.Signal != "SIGTERM" {
		t.Errorf("%+v", r)
	}
}

func (a *arena) flood(t *testing.T, path string, args []string) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	heard := 0
	r := a.run(t, process.Command{Path: path, Args: args, Limits: process.Limits{Output: 100_000}, Output: func(s process.Stream, b []byte) {
		if s == process.Stdout {
			heard += len(b)
		}
	}})
	runtime.GC()
	runtime.ReadMemStats(&after)
	if r.Reason != process.OutputLimit || !r.Truncated || len(r.Stdout) != 100_000 || heard != 100_000 {
		t.Errorf("%s, truncated %t, %d bytes, %d heard", r.Reason, r.Truncated, len(r.Stdout), heard)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
		t.Errorf("the worker's memory grew by %d bytes", grown)
	}
}

func (a *arena) disk(t *testing.T) {
	dd := process.Command{Path: "dd", Args: []string{"if=/dev/zero", "of=large", "bs=64k", "count=32"}, Workspace: a.ws, Limits: process.Limits{FileSize: 1 << 20}}
	if r := a.run(t, dd); r.Reason != process.FileLimit || r.Signal != "SIGXFSZ" {
		t.Errorf("%+v %s", r, r.Stderr)
	}
	remove := func() {
		if err := a.clean(); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	defer remove()
	c, token := a.command("fill", ".", "1048576", "4", "and wait")
	c.Workspace = a.workspace(t, sandbox.Limits{Total: 2 << 20})
	if r := a.run(t, c); r.Reason != process.DiskLimit || r.Signal != "SIGKILL" {
		t.Errorf("%+v %s", r, r.Stdout)
	}
	wantGone(t, token)
}

func (a *arena) clean() error {
	dir := filepath.Join(a.dir, "ws")
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

func (a *arena) input(t *testing.T) {
	large := []byte(strings.Repeat("input ", 5<<20))
	if r := a.run(t, process.Command{Path: "true", Stdin: large}); r.Reason != process.Exited || r.ExitCode != 0 {
		t.Errorf("%+v", r)
	}
	if r := a.run(t, process.Command{Path: "cat", Stdin: large[:600_000]}); string(r.Stdout) != string(large[:600_000]) {
		t.Errorf("%d bytes came back, %s", len(r.Stdout), r.Reason)
	}
	for _, empty := range [][]byte{nil, {}} {
		if r := a.run(t, process.Command{Path: "cat", Stdin: empty}); len(r.Stdout) != 0 || r.ExitCode != 0 {
			t.Errorf("%+v", r)
		}
	}
}

func (a *arena) metadata(t *testing.T) {
	before, err := os.Stat(a.canary)
	if err != nil {
		t.Fatal(err)
	}
	wantBlocked(t, a.attack(t, "metadata"), by(a, []string{"ENOENT"}, []string{"EPERM", "EACCES", "EXDEV"})...)
	after, err := os.Stat(a.canary)
	if err != nil || after.Mode() != before.Mode() || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("%v, %v", after, err)
	}
}

func (a *arena) architectures(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("left out: this machine has one architecture")
	}
	if got := a.attack(t, "x32"); got["x32"] != "ENOSYS" {
		t.Errorf("%v", got)
	}
	c, _ := a.command("int80")
	r := a.run(t, c)
	if r.Reason != process.Violation || r.Signal != "SIGSYS" || string(r.Stdout) != "trying\n" {
		t.Errorf("%+v %s", r, r.Stdout)
	}
}

func (a *arena) setuid(t *testing.T) {
	su, err := exec.LookPath("su")
	if info, statErr := os.Stat(su); err != nil || statErr != nil || info.Mode()&fs.ModeSetuid == 0 {
		t.Skip("left out: this machine has no set-user-id program su")
	}
	r := a.run(t, process.Command{Path: "sh", Args: []string{"-c", "su root -c id; grep -E '^(NoNewPrivs|CapEff|CapBnd)' /proc/self/status; id -u"}})
	text := string(r.Stdout)
	if strings.Contains(text, "uid=0") || strings.HasSuffix(text, "\n0\n") || text == "0\n" {
		t.Errorf("%s%s", r.Stdout, r.Stderr)
	}
	if a.mode == "namespaces" && strings.Contains(text, "CapEff") &&
		!strings.Contains(text, "CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nNoNewPrivs:\t1\n1000\n") {
		t.Errorf("%s", text)
	}
}

func (a *arena) failedLockDown(t *testing.T) {
	loop := filepath.Join(a.dir, "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(loop)
	begun := false
	for _, c := range []process.Command{{ReadOnly: []string{loop + "/below"}}} {
		c.Path, c.Args, c.Workspace = "touch", []string{"ran"}, a.ws
		c.Begin = func() error { begun = true; return nil }
		_, err := a.Run(t.Context(), c)
		if !errors.Is(err, process.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := os.Stat(filepath.Join(a.dir, "ws", "ran")); begun || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("begun %t, %v", begun, err)
	}
}
