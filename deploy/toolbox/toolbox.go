// Package toolbox makes the tools of a worker: those that are safe by default, and those that the operator's file grants,
// a part of it for each family of tools. A family is a leaf below tools and one row of the table here.
package toolbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/sandbox/process"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/credential"
	"github.com/longshore-run/longshore/tools/delegate"
	"github.com/longshore-run/longshore/tools/files"
	"github.com/longshore-run/longshore/tools/human"
	"github.com/longshore-run/longshore/tools/kv"
	"github.com/longshore-run/longshore/tools/kv/redisstore"
	"github.com/longshore-run/longshore/tools/scratchpad"
	"github.com/longshore-run/longshore/worker/hooks/command"
	"github.com/longshore-run/longshore/worker/memory/longterm"
)

// Needs are what families are made of, besides their part of the file.
type Needs struct {
	Credentials *credential.Store
	Dir         string       // names of files in the operator's file are relative to it
	Log         *slog.Logger // never gets arguments or results
	RedisURL    string       // of the worker; empty or "none" without one
	Version     string       // of this program
	Path, Home  string       // of the worker's environment, for processes of tools
	// Degraded takes a check of what a family can do without for a while. It must return at once.
	Degraded func(check func() error)
	NATS     *nats.Conn        // of the worker
	Sealer   redisstore.Sealer // of what tools keep; nil: it is in the clear
	Memory   longterm.Store    // the long-term memory of the worker; nil: it has none
	// Gone reports whether a run or a session is no longer known, so that what it kept is erased. nil: nothing is erased before its time.
	Gone func(context.Context, kv.Scope) (bool, error)

	// Open sets these.
	programs     func(context.Context) (process.Runner, error) // runs programs of tools
	hookPrograms func(context.Context) (process.Runner, error) // runs commands of hooks
	hooks        func(*command.Hooks)                          // takes the commands of hooks
	ready        func(check func() error)                      // takes a check of what a family needs to be ready
}

// Box holds the tools of a worker.
type Box struct {
	Tools    []tools.Tool
	Commands *command.Hooks // that hooks of agents may name; nil: none

	retries map[string]tools.RetryPolicy // of the operator, by the names of Tools
	shut    []func() error
	checks  []func() error
	needs   []func() error
}

// Set is the choice of these tools and more, with the operator's retries.
func (b *Box) Set(more ...tools.Tool) (*tools.Set, error) {
	set, err := tools.NewSet(slices.Concat(b.Tools, more)...)
	if err != nil {
		return nil, err
	}
	set.Retries = b.retries
	return set, nil
}

// Ready says what tools and hooks that are granted lack, such as a layer of the sandbox; nil: nothing. It returns at once.
func (b *Box) Ready() error {
	var errs []error
	for _, check := range b.needs {
		errs = append(errs, check())
	}
	return errors.Join(errs...)
}

// Degraded says what tools do without at the moment, such as servers that are away; nil: nothing. It returns at once.
func (b *Box) Degraded() error {
	var errs []error
	for _, check := range b.checks {
		errs = append(errs, check())
	}
	return errors.Join(errs...)
}

// Close ends what the tools hold open. No call may be under way.
func (b *Box) Close() error {
	var errs []error
	for _, shut := range slices.Backward(b.shut) {
		errs = append(errs, shut())
	}
	return errors.Join(errs...)
}

// family makes the tools of one part of the file. Errors about its content are *messages.FieldError within the part. The
// tools must be ready when it returns, and ctx ends it.
type family func(ctx context.Context, part json.RawMessage, n Needs) (made []tools.Tool, shut func() error, err error)

// families are those that need a grant, by the names of their parts. The part hooks makes no tools, but commands for hooks of agents.
func families() map[string]family {
	return map[string]family{
		"http":   httpTools,
		"search": searchTools,
		"kv":     kvTools,
		"memory": memoryTools,
		"sql":    sqlTools,
		"mcp":    mcpTools,
		"remote": remoteTools,
		"shell":  shellTools,
		"code":   codeTools,
		"hooks":  hookCommands,
	}
}

// Open makes the tools that need no grant, and those of the file, which says which Credentials, which Dir and which Path and Home needs has. The
// caller closes the Box.
func Open(ctx context.Context, t *settings.Tools, needs Needs) (*Box, error) {
	b := &Box{}
	for _, ungranted := range []func() ([]tools.Tool, error){files.Tools, human.Tools, delegate.Tools, scratchpad.Tools} {
		made, err := ungranted()
		if err != nil {
			return nil, fmt.Errorf("make tools: %w", err)
		}
		if err := safe(made); err != nil {
			return nil, err
		}
		b.Tools = append(b.Tools, made...)
	}
	granted, known := t.Granted(), families()
	needs.Credentials, needs.Dir, needs.Path, needs.Home = granted.Credentials, granted.Dir, granted.Path, granted.Home
	needs.Degraded = func(check func() error) { b.checks = append(b.checks, check) }
	needs.programs, needs.hookPrograms, needs.hooks = runner(t, "tools", needs.Log), runner(t, "hooks", needs.Log), func(h *command.Hooks) { b.Commands = h }
	needs.ready = func(check func() error) { b.needs = append(b.needs, check) }
	for _, name := range slices.Sorted(maps.Keys(granted.Families)) {
		if err := b.open(ctx, known, name, granted.Families[name], needs); err != nil {
			return nil, errors.Join(t.Wrong(strict.Under("spec", err)), b.Close())
		}
	}
	b.retries = granted.Retries
	if err := b.checkRetries(); err != nil {
		return nil, errors.Join(t.Wrong(err), b.Close())
	}
	return b, nil
}

// checkRetries refuses a policy of no tool.
func (b *Box) checkRetries() error {
	var names []string
	for _, t := range b.Tools {
		names = append(names, t.Spec().Name)
	}
	for _, name := range slices.Sorted(maps.Keys(b.retries)) {
		if slices.Contains(names, name) {
			continue
		}
		reason := "is not the name of a tool that this file grants"
		if near := strict.Nearest(name, names); near != "" {
			reason += ": did you mean " + near + "?"
		}
		return &messages.FieldError{Field: "spec.retries." + strict.Shown(name), Reason: reason}
	}
	return nil
}

// safe checks that tools may be offered without a grant.
func safe(made []tools.Tool) error {
	for _, t := range made {
		if spec := t.Spec(); !spec.SafeByDefault {
			return fmt.Errorf("the tool %s reaches more than its run, and is offered without a grant: give its family a part of the tools file", spec.Name)
		}
	}
	return nil
}

func (b *Box) open(ctx context.Context, known map[string]family, name string, part json.RawMessage, needs Needs) error {
	open := known[name]
	if open == nil {
		return &messages.FieldError{Field: strict.Shown(name), Reason: "is not a family of tools; known: " +
			strings.Join(slices.Sorted(maps.Keys(known)), ", ") + ", and credentials and retries"}
	}
	made, shut, err := open(ctx, part, needs)
	if err != nil {
		return strict.Under(name, err)
	}
	if shut != nil {
		b.shut = append(b.shut, shut)
	}
	for _, t := range made {
		if slices.ContainsFunc(b.Tools, func(other tools.Tool) bool { return other.Spec().Name == t.Spec().Name }) {
			return &messages.FieldError{Field: name, Reason: fmt.Sprintf("another tool has the name %q already: give this one another", strict.Shown(t.Spec().Name))}
		}
	}
	b.Tools = append(b.Tools, made...)
	return nil
}
