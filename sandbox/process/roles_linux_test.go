//go:build amd64 || arm64

package process_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/longshore-run/longshore/sandbox/process"
	"github.com/longshore-run/longshore/sandbox/process/processtest"
)

// The test binary plays other parts when this variable names one: a worker that is killed, or what starts the tests again under
// other conditions.
const (
	roleVariable = "LONGSHORE_TEST_ROLE"
	modeVariable = "LONGSHORE_TEST_MODE" // which mode TestAttacks must come to
	unprivileged = 65534
)

// play plays a role and returns the exit code.
func play(role string) int {
	role, test, _ := strings.Cut(role, " ")
	again := func() int {
		_ = os.Unsetenv(roleVariable)
		err := syscall.Exec("/proc/self/exe", []string{os.Args[0], "-test.run=" + test, "-test.v"}, os.Environ())
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var err error
	switch role {
	case "worker":
		return playWorker()
	case "hidden":
		if err = process.HideProcess(); err == nil {
			fmt.Println("hidden")
			_, err = io.Copy(io.Discard, os.Stdin) // until the test is done
		}
	case "no-user-namespaces": // the sandbox may make none: the user namespace that this process is user 0 of allows none
		if err = os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err == nil {
			if err = syscall.Setgroups(nil); err == nil {
				if err = errors.Join(syscall.Setgid(unprivileged), syscall.Setuid(unprivileged)); err == nil {
					return again()
				}
			}
		}
	case "masked-proc": // as in a container: a part of /proc is hidden, so the kernel lets no other be mounted
		err = errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount("masked", "/proc/tty", "tmpfs", unix.MS_RDONLY, ""))
		if err = errors.Join(err, syscall.Setgroups(nil), syscall.Setgid(unprivileged), syscall.Setuid(unprivileged)); err == nil {
			return again()
		}
	case "no-clone": // as in a container: its filter of system calls refuses namespaces and mounts
		if err = refuse(unix.EPERM, unix.SYS_UNSHARE, unix.SYS_MOUNT, unix.SYS_SETNS); err == nil {
			return again()
		}
	case "no-landlock":
		if err = refuse(unix.ENOSYS, unix.SYS_LANDLOCK_CREATE_RULESET); err == nil {
			return again()
		}
	case "no-seccomp":
		if err = refuse(unix.EINVAL, unix.SYS_SECCOMP); err == nil {
			return again()
		}
	default:
		err = errors.New("unknown role")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// refuse makes system calls of this process and its children fail, and clone if it is to make a namespace and mounts are refused.
func refuse(errno unix.Errno, calls ...uint32) error {
	op := func(code uint16, jt, jf uint8, k uint32) unix.SockFilter {
		return unix.SockFilter{Code: code, Jt: jt, Jf: jf, K: k}
	}
	const load, equal, set, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ, unix.BPF_JMP | unix.BPF_JSET, unix.BPF_RET
	filter := []unix.SockFilter{op(load, 0, 0, 0)}
	for _, call := range calls {
		filter = append(filter, op(equal, 0, 1, call), op(ret, 0, 0, unix.SECCOMP_RET_ERRNO|uint32(errno)))
		if call == unix.SYS_MOUNT {
			filter = append(filter, op(equal, 0, 1, unix.SYS_CLONE3), op(ret, 0, 0, unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS)),
				op(equal, 0, 3, unix.SYS_CLONE), op(load, 0, 0, 16), op(set, 0, 1, 0x7e020000), op(ret, 0, 0, unix.SECCOMP_RET_ERRNO|uint32(errno)), op(load, 0, 0, 0))
		}
	}
	filter = append(filter, op(ret, 0, 0, unix.SECCOMP_RET_ALLOW))
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return errno
	}
	return nil
}

// binary is a copy of the test binary that every user may run.
func binary(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "process-test-") //nolint:usetesting // t.TempDir belongs to one user alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return processtest.Copy(t, dir, "process.test")
}

// rerun says how tests run again in another process.
type rerun struct {
	tests   string // a pattern
	role    string // of the process before it runs them; empty: none
	mode    string // that they must come to; empty: both
	starter bool   // longshore-sandbox starts programs
	attr    *syscall.SysProcAttr
}

// again runs tests of this package again in another process, and repeats their results as its own.
func again(t *testing.T, r rerun) {
	t.Helper()
	program, err := attacker()
	if err != nil {
		t.Fatal(err)
	}
	temp, err := os.MkdirTemp("", "again-") //nolint:usetesting // as above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temp) })
	if err := os.Chmod(temp, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary(t), "-test.run="+r.tests, "-test.v")
	cmd.Env = []string{attackerVariable + "=" + program, "TMPDIR=" + temp, "PATH=" + os.Getenv("PATH"), modeVariable + "=" + r.mode, "GORACE=" + os.Getenv("GORACE")}
	if r.role != "" {
		cmd.Env = append(cmd.Env, roleVariable+"="+r.role+" "+r.tests)
	}
	if r.starter {
		path, err := smallStarter()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(cmd.Env, starterVariable+"="+path)
	}
	cmd.Dir, cmd.SysProcAttr = temp, r.attr
	out, err := cmd.CombinedOutput()
	results := 0
	var said []string
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		result, ok := strings.CutPrefix(line, "--- ")
		if !ok {
			said = append(said, line)
			continue
		}
		verdict, name, _ := strings.Cut(result, ": ")
		name, _, _ = strings.Cut(name, " (")
		results++
		as := "an unprivileged user"
		if r.role != "" {
			as += " (" + r.role + ")"
		}
		why := ""
		if verdict == "SKIP" {
			why = strings.Join(said[max(0, len(said)-3):], " ")
		}
		tally.count(r.mode, name, as, verdict == "PASS", why)
		t.Run(name, func(t *testing.T) {
			switch verdict {
			case "SKIP":
				t.Skip("left out: in another process: ", why)
			case "FAIL":
				t.Fail()
			}
		})
	}
	if err != nil || results == 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

func asAnotherUser() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
}

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("left out: only root can start a process as another user; the tests themselves run as an unprivileged one")
	}
}

// As a user without any privilege, in both modes. Here longshore-sandbox starts the programs; the other tests try the executable itself.
func TestAttacksAsAnotherUser(t *testing.T) {
	needsRoot(t)
	again(t, rerun{
		tests:   "^(TestAttacks|TestWorkerIsHidden|TestManyAtOnce|TestKilledWorker|TestWorkspaceIsReplaced|TestMemoryIsTheProgramsOwn|TestMemoryOfAllProcesses)$",
		starter: true, attr: asAnotherUser(),
	})
}

// Where the machine has no user namespaces, in the two ways in which it says so.
func TestAttacksWithoutNamespaces(t *testing.T) {
	needsRoot(t)
	t.Run("refused by a filter", func(t *testing.T) {
		again(t, rerun{tests: "^(TestAttacks|TestRequiredNamespaces|TestMemoryOfAllProcesses)$", role: "no-clone", mode: "landlock", attr: asAnotherUser()})
	})
	t.Run("none allowed", func(t *testing.T) {
		again(t, rerun{tests: "^(TestAttacks|TestRequiredNamespaces|TestMemoryOfAllProcesses)$", role: "no-user-namespaces", mode: "landlock", starter: true, attr: &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{HostID: 0, Size: 1}, {ContainerID: unprivileged, HostID: unprivileged, Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: 0, Size: 1}, {ContainerID: unprivileged, HostID: unprivileged, Size: 1}}, GidMappingsEnableSetgroups: true,
		}})
	})
}

// In a container that hides parts of /proc, and lets programs make user namespaces.
func TestAttacksWithMaskedProc(t *testing.T) {
	needsRoot(t)
	again(t, rerun{
		tests: "^(TestAttacks|TestProcIsMissing)$", role: "masked-proc", mode: "namespaces",
		attr: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS},
	})
}

// Part of TestAttacksWithMaskedProc.
func TestProcIsMissing(t *testing.T) {
	if os.Getenv(modeVariable) != "namespaces" {
		return
	}
	a := newArena(t, process.Config{})
	if r := a.run(t, process.Command{Path: "ls", Args: []string{"/proc"}}); r.ExitCode != 0 || len(r.Stdout) > 0 {
		t.Errorf("%+v %s%s", r, r.Stdout, r.Stderr)
	}
}

// Part of TestAttacksWithoutNamespaces.
func TestRequiredNamespaces(t *testing.T) {
	if os.Getenv(modeVariable) != "landlock" {
		return
	}
	_, err := process.New(t.Context(), process.Config{Require: process.LayerNamespaces})
	u, ok := errors.AsType[*process.UnavailableError](err)
	if !ok || u.Missing != process.LayerNamespaces || !errors.Is(err, process.ErrUnavailable) || !strings.Contains(err.Error(), "namespaces: start sandboxed process: ") {
		t.Errorf("got %v", err)
	}
}

// Attack 73: nothing runs where Landlock or the filter of system calls is missing.
func TestAttack73Unavailable(t *testing.T) {
	if os.Getenv(modeVariable) != "" {
		var want process.Layers
		switch os.Getenv(modeVariable) {
		case "no-landlock":
			want = process.LayerLandlock
		default:
			want = process.LayerSeccomp
		}
		_, err := process.New(t.Context(), process.Config{})
		if u, ok := errors.AsType[*process.UnavailableError](err); !ok || !u.Missing.Has(want) {
			t.Errorf("got %v", err)
		} else {
			t.Log(err)
		}
		return
	}
	attr := &syscall.SysProcAttr{}
	if os.Geteuid() == 0 {
		attr = asAnotherUser()
	}
	for _, role := range []string{"no-landlock", "no-seccomp"} {
		t.Run(role, func(t *testing.T) {
			again(t, rerun{tests: "^TestAttack73Unavailable$", role: role, mode: role, attr: attr})
		})
	}
}

func TestUserZeroNeedsNamespaces(t *testing.T) {
	needsRoot(t)
	_, err := process.New(t.Context(), process.Config{NoNamespaces: true})
	if !errors.Is(err, process.ErrUnavailable) || !strings.Contains(err.Error(), "user 0") {
		t.Errorf("got %v", err)
	}
}

// Attack 36: another process of the same user reads the worker's environment.
func TestWorkerIsHidden(t *testing.T) {
	if os.Geteuid() == 0 {
		return // root reads everything; TestAttacksAsAnotherUser runs this as another user
	}
	counts(t)
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = []string{roleVariable + "=hidden", "SECRET=" + canaryText}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "hidden\n" {
		t.Errorf("%q, %v", line, err)
	}
	for _, name := range []string{"environ", "mem", "maps", "auxv"} {
		text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), name))
		if !errors.Is(err, os.ErrPermission) || bytes.Contains(text, []byte(canaryText)) {
			t.Errorf("%s: %d bytes, %v", name, len(text), err)
		}
	}
	if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
		t.Error(err)
	}
}

// playWorker runs a program until it is killed.
func playWorker() int {
	ctx := context.Background()
	if err := process.HideProcess(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var cfg process.Config
	if os.Getenv(modeVariable) == "landlock" {
		cfg.NoNamespaces = true
	}
	n, err := process.New(ctx, cfg)
	if path := os.Getenv(starterVariable); path != "" {
		text, _ := os.ReadFile(path)
		n, err = process.NewWith(ctx, cfg, path, fmt.Sprintf("%x", sha256.Sum256(text)))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var c process.Command
	if err := json.NewDecoder(os.Stdin).Decode(&struct {
		Path     *string   `json:"path"`
		Args     *[]string `json:"args"`
		Env      *[]string `json:"env"`
		ReadOnly *[]string `json:"readOnly"`
	}{&c.Path, &c.Args, &c.Env, &c.ReadOnly}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	c.Output = func(_ process.Stream, b []byte) { _, _ = os.Stdout.Write(b) }
	_, err = n.Run(ctx, c)
	fmt.Fprintln(os.Stderr, "ended: ", err)
	return 1
}

// Attack 56: the worker is killed, which the sandbox must not survive.
func TestKilledWorker(t *testing.T) {
	for _, mode := range []string{"namespaces", "landlock"} {
		t.Run(mode, func(t *testing.T) {
			if mode == "landlock" && os.Geteuid() == 0 {
				return // refused, see TestUserZeroNeedsNamespaces
			}
			counts(t)
			a := newArena(t, process.Config{NoNamespaces: mode == "landlock"})
			if a.mode != mode {
				t.Skip("left out: this machine has no namespaces")
			}
			c, token := a.command("sleep")
			text, err := json.Marshal(map[string]any{"path": c.Path, "args": c.Args, "env": c.Env, "readOnly": c.ReadOnly})
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
			cmd.Env = append(os.Environ(), roleVariable+"=worker", modeVariable+"="+mode)
			cmd.Stdin = bytes.NewReader(text)
			var said bytes.Buffer
			cmd.Stderr = &said
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			if line != "sleeping\n" {
				t.Fatalf("%q, %v, %s", line, err, said.String())
			}
			if len(withToken(token)) == 0 {
				t.Error("the program does not run")
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			until(t, "the program ends", func() bool { return len(withToken(token)) == 0 })
		})
	}
}

// inherit makes a file one that every child gets.
func inherit(t *testing.T, f *os.File) {
	t.Helper()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
}

func decode(t *testing.T, r process.Result) map[string]string {
	t.Helper()
	got := map[string]string{}
	if err := json.Unmarshal(r.Stdout, &got); err != nil {
		t.Errorf("%+v: %s%s", r, r.Stdout, r.Stderr)
	}
	return got
}
