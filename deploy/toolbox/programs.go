package toolbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/sandbox/process"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/code"
	"github.com/longshore-run/longshore/tools/confined"
	"github.com/longshore-run/longshore/tools/shell"
	"github.com/longshore-run/longshore/worker/hooks/command"
)

// shellTools is shell.
func shellTools(ctx context.Context, part json.RawMessage, n Needs) ([]tools.Tool, func() error, error) {
	cfg, err := shell.ParseConfig(part)
	if err != nil {
		return nil, nil, err
	}
	run, err := n.programs(ctx)
	if err != nil {
		return nil, nil, err
	}
	made, err := shell.Tool(cfg, run)
	return n.confined(made, err)
}

// codeTools is run_code.
func codeTools(ctx context.Context, part json.RawMessage, n Needs) ([]tools.Tool, func() error, error) {
	cfg, err := code.ParseConfig(part)
	if err != nil {
		return nil, nil, err
	}
	run, err := n.programs(ctx)
	if err != nil {
		return nil, nil, err
	}
	executable, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("find this program: %w", err)
	}
	made, err := code.Tool(cfg, run, executable)
	return n.confined(made, err)
}

// hookCommands are no tools: the box hands them to the hooks of agents. They have turns of their own, so that no program of a tool
// keeps a hook waiting.
func hookCommands(ctx context.Context, part json.RawMessage, n Needs) ([]tools.Tool, func() error, error) {
	cfg, err := command.ParseConfig(part)
	if err != nil {
		return nil, nil, err
	}
	run, err := n.hookPrograms(ctx)
	if err != nil {
		return nil, nil, err
	}
	hooks, err := command.New(cfg, run)
	if err != nil {
		return nil, nil, err
	}
	n.ready(hooks.Ready)
	n.hooks(hooks)
	return nil, func() error { hooks.Close(); return nil }, nil
}

// confined offers a tool, and has the worker be ready only while its programs can be confined.
func (n *Needs) confined(made tools.Tool, err error) ([]tools.Tool, func() error, error) {
	if err != nil {
		return nil, nil, err
	}
	if t, ok := made.(confined.Tool); ok {
		n.ready(func() error {
			if err := t.Runner.Ready(); err != nil {
				return fmt.Errorf("tool %s: %w", t.Spec().Name, err)
			}
			return nil
		})
	}
	return []tools.Tool{made}, nil, nil
}

// runner makes the runner of all families, once. Where programs cannot be confined it is one that refuses every program, so that the
// rest of the worker works. The log says what confines programs, and which executable starts them.
func runner(t *settings.Tools, of string, log *slog.Logger) func(context.Context) (process.Runner, error) {
	var once sync.Once
	var run process.Runner
	var err error
	return func(ctx context.Context) (process.Runner, error) {
		once.Do(func() {
			run, err = newRunner(ctx, t)
			if native, ok := run.(*process.Native); ok {
				log.InfoContext(ctx, "programs are confined", "programs_of", of, "layers", native.Layers().String(), "started_by", native.StartedBy())
			}
		})
		return run, err
	}
}

func newRunner(ctx context.Context, t *settings.Tools) (process.Runner, error) {
	if err := process.HideProcess(); err != nil {
		return nil, err
	}
	cfg := process.Config{Cgroup: t.SandboxCgroup, Parallel: t.SandboxParallel}
	if cfg.Cgroup != "" { // the operator counts on it
		cfg.Require = process.LayerCgroup
	}
	run, err := process.New(ctx, cfg)
	if errors.Is(err, process.ErrUnavailable) {
		return refusing{err}, nil
	}
	if err != nil {
		return nil, err
	}
	return run, nil
}

// refusing runs nothing.
type refusing struct{ err error }

var _ process.Runner = refusing{}

// Run implements process.Runner.
func (r refusing) Run(context.Context, process.Command) (process.Result, error) {
	return process.Result{}, r.err
}

// Layers implements process.Runner.
func (r refusing) Layers() process.Layers { return 0 }

// Ready says why.
func (r refusing) Ready() error { return r.err }

// Confinement is what confines the programs of tools.
type Confinement struct {
	Layers    process.Layers
	StartedBy string // names the executable that starts them
}

// Programs finds out what the programs of the granted tools and the commands of hooks are confined by, and says what they lack. Without
// any of them granted is false.
func Programs(ctx context.Context, t *settings.Tools) (by Confinement, granted bool, err error) {
	var run process.Runner
	var lacks []error
	shared := func(ctx context.Context) (process.Runner, error) {
		if run != nil {
			return run, nil
		}
		var err error
		run, err = newRunner(ctx, t)
		return run, err
	}
	n := Needs{ready: func(check func() error) { lacks = append(lacks, check()) }, programs: shared, hookPrograms: shared, hooks: func(*command.Hooks) {}}
	for _, f := range []struct {
		name string
		open family
	}{{"code", codeTools}, {"hooks", hookCommands}, {"shell", shellTools}} {
		part, ok := t.Granted().Families[f.name]
		if !ok {
			continue
		}
		granted = true
		if _, _, err := f.open(ctx, part, n); err != nil {
			return by, true, t.Wrong(strict.Under("spec."+f.name, err))
		}
	}
	if run != nil {
		by.Layers = run.Layers()
	}
	if native, ok := run.(*process.Native); ok {
		by.StartedBy = native.StartedBy()
	}
	return by, granted, errors.Join(lacks...)
}
