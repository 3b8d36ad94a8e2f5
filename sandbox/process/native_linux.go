//go:build amd64 || arm64

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Init is called in the first line of main, before flags and the environment are read: in the child that confines itself it
// does not return. The child begins even before, when package confine is initialised, which Init links to the program.
func Init() {}

// HideProcess keeps other processes of the same user from reading this one's memory, environment and open files through
// /proc, and from tracing it. A worker calls it at its start. It leaves no core dumps either.
func HideProcess() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide process: %w", err)
	}
	return nil
}

// Native runs programs on this machine, at most [Config.Parallel] at once; further ones wait for their turn. Safe for
// concurrent use.
type Native struct {
	cfg     Config
	layers  Layers
	abi     int    // of Landlock
	cgroup  string // where groups are made; empty: none
	starter starter

	turns   chan struct{} // holds one for each program that runs
	waiting atomic.Int64
}

var _ Runner = (*Native)(nil)

// New tries what this machine can enforce by running children that try to break out, which takes some 50 ms, and returns an
// [UnavailableError] if that is less than [Config.Require], or if there is no Landlock or seccomp. Children are the program
// longshore-sandbox if it stands beside this executable, is of the same build and passes; otherwise this executable.
func New(ctx context.Context, cfg Config) (*Native, error) {
	return newNative(ctx, cfg, besideExecutable(), starterSum)
}

// newNative is New with the place of longshore-sandbox and its sum.
func newNative(ctx context.Context, cfg Config, path, sum string) (*Native, error) {
	cfg = cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	small, refused := openStarter(path, sum)
	if refused == nil {
		n, err := proved(ctx, cfg, small)
		if err == nil {
			return n, nil
		}
		_ = small.file.Close()
		refused = fmt.Errorf("%s: %w", path, err)
	}
	return proved(ctx, cfg, ownExecutable(refused))
}

// proved is a runner whose layers its own children have proved.
func proved(ctx context.Context, cfg Config, s starter) (*Native, error) {
	n := &Native{cfg: cfg, starter: s, turns: make(chan struct{}, cfg.Parallel)}
	reasons, err := n.prove(ctx)
	if err != nil {
		return nil, err
	}
	if missing := cfg.Require &^ n.layers; missing != 0 {
		return nil, &UnavailableError{Missing: missing, Reasons: reasons}
	}
	return n, nil
}

// Layers returns what the self-test proved.
func (n *Native) Layers() Layers { return n.layers }

// StartedBy names the executable that confines programs, for people: the path of longshore-sandbox, or this executable and why.
func (n *Native) StartedBy() string { return n.starter.name }

// Load returns how many programs run, and how many wait for their turn.
func (n *Native) Load() (running, waiting int) { return len(n.turns), int(n.waiting.Load()) }

// Run runs a program; see [Runner].
func (n *Native) Run(ctx context.Context, c Command) (Result, error) {
	if missing := n.missing(c); missing != 0 {
		return Result{}, &UnavailableError{Missing: missing}
	}
	s, err := n.setup(c)
	if err != nil {
		return Result{}, err
	}
	done, err := n.turn(ctx)
	if err != nil {
		return Result{}, err
	}
	defer done()
	return n.run(ctx, c, s)
}

// missing returns the layers that a command needs and that there are not.
func (n *Native) missing(c Command) Layers {
	need := c.Require
	if c.Proxy != nil {
		need |= LayerNamespaces
	}
	return need &^ n.layers
}

// turn waits until a program may run.
func (n *Native) turn(ctx context.Context) (done func(), err error) {
	n.waiting.Add(1)
	defer n.waiting.Add(-1)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("wait for a turn: %w", context.Cause(ctx))
	}
	select {
	case n.turns <- struct{}{}:
		return func() { <-n.turns }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for a turn: %w", context.Cause(ctx))
	}
}

// check returns a [CommandError] for the first field that cannot be used.
func (c Config) check() error {
	if info, err := os.Stat(c.Temp); err != nil || !info.IsDir() {
		return &CommandError{Field: "temp", Reason: clip(c.Temp) + " is not a folder"}
	}
	return checkReadOnly(c.ReadOnly)
}

// errGone means that the child ended without a word.
var errGone = errors.New("the sandboxed process ended before it was confined")
