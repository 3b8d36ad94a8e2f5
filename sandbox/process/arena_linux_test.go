//go:build amd64 || arm64

package process_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/sandbox/process"
	"github.com/longshore-run/longshore/sandbox/process/confine"
)

// Programs that another process has built for this one.
const (
	attackerVariable = "LONGSHORE_TEST_ATTACKER"
	starterVariable  = "LONGSHORE_TEST_STARTER"
)

// built are the folders of programs, which TestMain removes.
var built []string

// attacker is the program of testdata/attacker, built without the race detector, which needs more address space than a program
// has in the sandbox.
var attacker = sync.OnceValues(func() (string, error) {
	return program(attackerVariable, "attacker", filepath.Join("testdata", "attacker"))
})

// smallStarter is longshore-sandbox, as make builds it.
var smallStarter = sync.OnceValues(func() (string, error) {
	return program(starterVariable, confine.Name, confine.Name)
})

// program builds the program of a folder, unless the variable names it.
func program(variable, name, folder string) (string, error) {
	if path := os.Getenv(variable); path != "" {
		return path, nil
	}
	dir, err := os.MkdirTemp("", name+"-")
	if err != nil {
		return "", err
	}
	built = append(built, dir)
	path := filepath.Join(dir, name)
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", path, ".")
	build.Dir, build.Env = folder, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, errors.Join(os.Chmod(dir, 0o755), os.Chmod(path, 0o755))
}

func sumOf(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// arena is a workspace, a runner and a file outside, which belongs to the same user and may be read by all.
type arena struct {
	*process.Native
	mode    string // "namespaces" or "landlock"
	dir     string
	canary  string
	ws      *sandbox.Workspace
	program string
}

const canaryText = "s3cret"

func newArena(t *testing.T, cfg process.Config) *arena {
	t.Helper()
	program, err := attacker()
	if err != nil {
		t.Fatal(err)
	}
	a := &arena{dir: t.TempDir(), program: program, mode: "namespaces"}
	cfg.Temp = filepath.Join(a.dir, "temp")
	if err := os.Mkdir(cfg.Temp, 0o700); err != nil {
		t.Fatal(err)
	}
	if a.Native, err = newRunner(t, cfg); err != nil {
		if errors.Is(err, process.ErrUnavailable) {
			t.Skip("left out: ", err)
		}
		t.Fatal(err)
	}
	if !a.Layers().Has(process.LayerNamespaces) {
		a.mode = "landlock"
	}
	a.canary = filepath.Join(a.dir, "canary")
	if err := os.WriteFile(a.canary, []byte(canaryText), 0o644); err != nil {
		t.Fatal(err)
	}
	a.ws = a.workspace(t, sandbox.Limits{})
	return a
}

// newRunner starts programs by this test binary, or by longshore-sandbox if the test says so.
func newRunner(t *testing.T, cfg process.Config) (*process.Native, error) {
	t.Helper()
	path := os.Getenv(starterVariable)
	if path == "" {
		return process.New(t.Context(), cfg)
	}
	n, err := process.NewWith(t.Context(), cfg, path, sumOf(t, path))
	if err == nil && n.StartedBy() != path {
		t.Fatal("started by ", n.StartedBy())
	}
	return n, err
}

func (a *arena) workspace(t *testing.T, l sandbox.Limits) *sandbox.Workspace {
	t.Helper()
	w, err := sandbox.Open(filepath.Join(a.dir, "ws"), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// by returns what is right in the mode of the arena.
func by[T any](a *arena, namespaces, landlock T) T {
	if a.mode == "namespaces" {
		return namespaces
	}
	return landlock
}

// command is an attack; its processes are found by the token.
func (a *arena) command(attack string, args ...string) (c process.Command, token string) {
	token = "token-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	return process.Command{
		Path: a.program, Args: append([]string{attack, token}, args...), ReadOnly: []string{a.program}, Workspace: a.ws,
		Env: []string{"ATTACKER_MAY_RUN=in the sandbox", "ATTACKER_CANARY=" + a.canary, "ATTACKER_WORKER=" + strconv.Itoa(os.Getpid())},
	}, token
}

func (a *arena) run(t *testing.T, c process.Command) process.Result {
	t.Helper()
	r, err := a.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// attack runs an attack that reports the outcome of its attempts.
func (a *arena) attack(t *testing.T, attack string, args ...string) map[string]string {
	t.Helper()
	c, token := a.command(attack, args...)
	r := a.run(t, c)
	got := map[string]string{}
	if err := json.Unmarshal(r.Stdout, &got); err != nil || r.Reason != process.Exited || r.ExitCode != 0 {
		t.Fatalf("%s ended with %d %s %s: %s%s", attack, r.ExitCode, r.Signal, r.Reason, r.Stdout, r.Stderr)
	}
	wantGone(t, token)
	return got
}

// wantBlocked fails for each attempt that ended in another way than one of these.
func wantBlocked(t *testing.T, got map[string]string, errs ...string) {
	t.Helper()
	if len(got) == 0 {
		t.Error("nothing was tried")
	}
	for attempt, result := range got {
		if !slices.Contains(errs, result) {
			t.Errorf("%s: %s, want one of %v", attempt, result, errs)
		}
	}
}

// wantGone fails if a process with the token in its arguments runs.
func wantGone(t *testing.T, token string) {
	t.Helper()
	if pids := withToken(token); len(pids) > 0 {
		t.Errorf("still running: %v", pids)
	}
}

func withToken(token string) (pids []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte(token)) {
			pids = append(pids, strings.Split(path, "/")[2])
		}
	}
	return pids
}

// until waits for something to happen.
func until(t *testing.T, what string, happened func() bool) {
	t.Helper()
	tick, late := time.NewTicker(5*time.Millisecond), time.NewTimer(20*time.Second)
	defer tick.Stop()
	defer late.Stop()
	for !happened() {
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatal("waited in vain: ", what)
		}
	}
}
