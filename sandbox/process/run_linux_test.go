//go:build amd64 || arm64

package process_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/sandbox/process"
)

// modes runs a test in each mode that the user of the tests can use.
func modes(t *testing.T, test func(t *testing.T, a *arena)) {
	t.Helper()
	t.Run("namespaces", func(t *testing.T) {
		counts(t)
		test(t, newArena(t, process.Config{Require: process.LayerNamespaces}))
	})
	if os.Geteuid() != 0 { // user 0 is refused there
		t.Run("landlock", func(t *testing.T) {
			counts(t)
			test(t, newArena(t, process.Config{NoNamespaces: true}))
		})
	}
}

// Attack 58: 200 calls at once. None is lost, and as only as many run at once as there are CPUs, all together need no more memory than so
// many times the limit of one: each uses most of it, and gets no more.
func TestManyAtOnce(t *testing.T) {
	const calls, limit = 200, 32 << 20
	const script = `dd if=/dev/zero of=/dev/null bs=24M count=1 2>/dev/null || exit 1
		dd if=/dev/zero of=/dev/null bs=64M count=1 2>/dev/null && exit 2
		echo $0`
	modes(t, func(t *testing.T, a *arena) {
		var done sync.WaitGroup
		var most, waited, least, largest atomic.Int64
		least.Store(limit)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		errs := make(chan error, calls)
		for i := range calls {
			done.Go(func() {
				want := strconv.Itoa(i)
				r, err := a.Run(t.Context(), process.Command{Path: "sh", Args: []string{"-c", script, want}, Limits: process.Limits{Memory: limit}, Begin: func() error {
					running, waiting := a.Load()
					raise(&most, int64(running))
					raise(&waited, int64(waiting))
					return nil
				}})
				if err != nil || strings.TrimSpace(string(r.Stdout)) != want {
					errs <- fmt.Errorf("%d: %+v, %w", i, r, err)
				}
				raise(&largest, r.Usage.Memory)
				for old := least.Load(); r.Usage.Memory < old && !least.CompareAndSwap(old, r.Usage.Memory); old = least.Load() {
				}
			})
		}
		sampled := make(chan int64)
		ended := make(chan struct{})
		go func() { sampled <- mostMemory(ended) }()
		done.Wait()
		close(ended)
		together := <-sampled
		close(errs)
		for err := range errs {
			t.Error(err)
		}
		runtime.ReadMemStats(&after)
		if most.Load() > int64(runtime.NumCPU()) || waited.Load() < calls/2 {
			t.Errorf("at most %d ran at once, at most %d waited", most.Load(), waited.Load())
		}
		const code = 8 << 20 // of the program and its libraries, which all of them share
		if a.mode == "landlock" && largest.Load() == 0 {
			t.Log("how much memory each used is not known: it is less than that of the worker")
		} else if largest.Load() > limit+code || least.Load() < limit/2 {
			t.Errorf("programs used %d to %d bytes, the limit is %d", least.Load(), largest.Load(), limit)
		}
		if together < limit/2 || together > int64(runtime.NumCPU())*(limit+code) {
			t.Errorf("all together had %d bytes at some time, the limit of each is %d", together, limit)
		}
		t.Logf("%d calls: at most %d at once, %d to %d MiB each, at most %d MiB together", calls, most.Load(), least.Load()>>20, largest.Load()>>20, together>>20)
		if running, waiting := a.Load(); running != 0 || waiting != 0 {
			t.Errorf("%d run and %d wait after the end", running, waiting)
		}
		if grown := int64(after.Sys) - int64(before.Sys); grown > 64<<20 {
			t.Errorf("the worker grew by %d bytes", grown)
		}
	})
}

// mostMemory is the most that the programs which this process has started were seen to have together, until ended is closed.
func mostMemory(ended <-chan struct{}) (most int64) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return most
		case <-tick.C:
			most = max(most, process.MemoryOfPrograms())
		}
	}
}

// The memory of a program is its own, and not the worker's, from which it was started.
func TestMemoryIsTheProgramsOwn(t *testing.T) {
	modes(t, func(t *testing.T, a *arena) {
		ballast := make([]byte, 128<<20) // of the worker
		for i := 0; i < len(ballast); i += 4 << 10 {
			ballast[i] = 1
		}
		if r := a.run(t, process.Command{Path: "true"}); r.Usage.Memory >= int64(len(ballast)) {
			t.Errorf("true used %d bytes", r.Usage.Memory)
		}
		runtime.KeepAlive(ballast)
	})
}

// A program may start any number of processes, one after the other.
func TestManyProcessesInTurn(t *testing.T) {
	modes(t, func(t *testing.T, a *arena) {
		r, err := a.Run(t.Context(), process.Command{Path: "sh", Args: []string{"-c", "i=0; while [ $i -lt 800 ]; do /bin/true || exit 9; i=$((i+1)); done; echo $i"}})
		if err != nil || strings.TrimSpace(string(r.Stdout)) != "800" {
			t.Errorf("%+v, %v: %s", r, err, r.Stderr)
		}
	})
}

func raise(to *atomic.Int64, v int64) {
	for old := to.Load(); v > old && !to.CompareAndSwap(old, v); old = to.Load() {
	}
}

// Attack 22: the folder was replaced by another one after the workspace was opened.
func TestWorkspaceIsReplaced(t *testing.T) {
	modes(t, func(t *testing.T, a *arena) {
		ws := filepath.Join(a.dir, "ws")
		if err := a.ws.Write("mine", []byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Rename(ws, ws+"-moved"), os.Mkdir(ws, 0o700), os.WriteFile(filepath.Join(ws, "others"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		if r := a.run(t, process.Command{Path: "ls", Workspace: a.ws}); string(r.Stdout) != "mine\n" { // the folder that was opened
			t.Errorf("%s%s", r.Stdout, r.Stderr)
		}
	})
}

func TestCommandsAreChecked(t *testing.T) {
	modes(t, func(t *testing.T, a *arena) {
		if err := a.ws.Write("in/file", []byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(a.dir, filepath.Join(a.dir, "ws", "away")); err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]process.Command{
			"path: must name a program":                                 {},
			`path: there is no program "no-such" on this machine`:       {Path: "no-such"},
			`path: "/no-such" is not in the sandbox, or what`:           {Path: "/no-such"},
			`path: "./in/file" cannot be run: permission denied`:        {Path: "./in/file", Workspace: a.ws},
			`dir: "../x" is not a folder below the workspace`:           {Path: "true", Dir: "../x", Workspace: a.ws},
			`dir: "/tmp" is not a folder below the workspace`:           {Path: "true", Dir: "/tmp", Workspace: a.ws},
			`dir: "in" is not a folder below the workspace`:             {Path: "true", Dir: "in"},
			"dir: is not a folder of the workspace, without symbolic l": {Path: "true", Dir: "away", Workspace: a.ws},
			"dir: is not a folder of the workspace, without symbolic ":  {Path: "true", Dir: "missing", Workspace: a.ws},
			`env: "A" is not NAME=value`:                                {Path: "true", Env: []string{"A"}},
			"args: has a null character":                                {Path: "true", Args: []string{"\x00"}},
			"args: is longer than 131072 bytes":                         {Path: "true", Args: []string{strings.Repeat("x", 200_000)}},
			`readOnly: "/" must be an absolute path without .., and`:    {Path: "true", ReadOnly: []string{"/"}},
			`readOnly: "/usr/../root" must be an absolute path`:         {Path: "true", ReadOnly: []string{"/usr/../root"}},
		} {
			_, err := a.Run(t.Context(), c)
			if _, ok := errors.AsType[*process.CommandError](err); !ok || !strings.HasPrefix(err.Error(), name) {
				t.Errorf("got %v, want %s", err, name)
			}
		}
		if r := a.run(t, process.Command{Path: "cat", Args: []string{"file"}, Dir: "in", Workspace: a.ws}); string(r.Stdout) != "x" {
			t.Errorf("%+v %s", r, r.Stderr)
		}
	})
}

func TestBeginAndCancel(t *testing.T) {
	modes(t, func(t *testing.T, a *arena) {
		refused := errors.New("no lease")
		touch := process.Command{Path: "touch", Args: []string{"ran"}, Workspace: a.ws, Begin: func() error { return refused }}
		if _, err := a.Run(t.Context(), touch); !errors.Is(err, refused) {
			t.Errorf("got %v", err)
		}
		over := errors.New("it is over")
		ctx, cancel := context.WithCancelCause(t.Context())
		touch.Begin = func() error { cancel(over); return nil }
		cancel(over)
		if _, err := a.Run(ctx, touch); !errors.Is(err, over) {
			t.Errorf("got %v", err)
		}
		if _, err := os.Stat(filepath.Join(a.dir, "ws", "ran")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a program ran that was refused: %v", err)
		}

		ctx, cancel = context.WithCancelCause(t.Context())
		c, token := a.command("sleep")
		c.Output = func(process.Stream, []byte) { cancel(over) }
		r, err := a.Run(ctx, c)
		if err != nil || r.Reason != process.Canceled || r.Signal != "SIGKILL" || string(r.Stdout) != "sleeping\n" {
			t.Errorf("%+v, %v", r, err)
		}
		wantGone(t, token)
	})
}

// In namespaces older versions of Landlock do.
func TestOlderLandlock(t *testing.T) {
	a := newArena(t, process.Config{Require: process.LayerNamespaces})
	for _, abi := range []int{3, 4, 5, 6} {
		a.Knows(abi)
		wantBlocked(t, a.attack(t, "files", a.canary, "/etc/shadow"), "ENOENT", "EACCES")
		wantBlocked(t, a.attack(t, "worker"), "EPERM", "ESRCH", "EBADF")
		if r := a.run(t, process.Command{Path: "touch", Args: []string{"here"}, Workspace: a.ws}); r.ExitCode != 0 {
			t.Errorf("version %d: %+v %s", abi, r, r.Stderr)
		}
	}
}

// Programs that people expect to work do.
func TestProgramsWork(t *testing.T) {
	modes(t, func(t *testing.T, a *arena) {
		for _, test := range [][2]string{
			{"sh", `mkdir -p a/b && echo 1 > a/b/c && mv a/b/c a/d && rm -r a/b && cat a/d && ls`},
			{"sh", `echo x | sed s/x/y/ > "$TMPDIR/f" && sort "$TMPDIR/f" && cd "$HOME" && pwd >/dev/null && kill -0 $$`},
			{"bash", `cat <(echo 1) && printf '%s\n' {1..3} | wc -l`},
			{"python3", `import tempfile, subprocess, json; print(json.dumps(subprocess.run(["echo", "x"], capture_output=True, text=True).stdout)); tempfile.TemporaryFile()`},
			{"git", `init`},
		} {
			if _, err := exec.LookPath(test[0]); err != nil {
				t.Log("left out: ", err)
				continue
			}
			args := []string{"-c", test[1]}
			if test[0] == "git" {
				args = []string{"-c", "init.defaultBranch=main", test[1]}
			}
			if a.mode == "landlock" && (test[0] == "bash" || test[0] == "git") {
				continue // <() needs /proc, and git init changes modes; docs/sandbox.md says so
			}
			r := a.run(t, process.Command{Path: test[0], Args: args, Workspace: a.ws})
			if r.ExitCode != 0 {
				t.Errorf("%v: %+v\n%s%s", test, r, r.Stdout, r.Stderr)
			}
		}
	})
}

// The attacking program itself refuses to run where it could do harm.
func TestAttackerStaysInside(t *testing.T) {
	program, err := attacker()
	if err != nil {
		t.Fatal(err)
	}
	canary := filepath.Join(t.TempDir(), "canary")
	if err := os.WriteFile(canary, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, env := range [][]string{nil, {"ATTACKER_MAY_RUN=in the sandbox", "ATTACKER_CANARY=" + canary}} {
		cmd := exec.Command(program, "fds", "token")
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 97 {
			t.Errorf("%v %s", err, out)
		}
	}
}
