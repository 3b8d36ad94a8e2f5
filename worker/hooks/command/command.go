// Package command makes the command hooks of agents. Make [Hooks] with [New] from the operator's list, and give [Hooks.Hook] to
// the runner.
//
// An agent names a command of the list; it states no program and no argument. The program runs in the sandbox, without the files of
// the run and without a network unless the operator grants it hosts. It reads a messages.HookCall as JSON from its standard input. With
// exit code 0 its standard output is the answer at the points that decide; with exit code 2 it refuses there, and its standard
// error is the reason. Any other end is a failure, as is a machine that cannot confine programs as required.
package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/sandbox/process"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/confined"
)

const (
	maxAnswer  = 64 << 10               // bytes of an answer
	maxOutput  = maxAnswer + 64<<10     // bytes of both outputs: a program that writes more is ended
	maxFailure = 256                    // bytes of standard error in the reason of a failure
	exitDeny   = 2                      // the exit code of a refusal
	variable   = "LONGSHORE_HOOK_POINT" // names the point, so that a script need not read its input
)

// Hooks runs the operator's commands. A nil Hooks has none. Safe for concurrent use.
type Hooks struct {
	commands map[string]listed

	mu     sync.Mutex
	closed bool           // guarded by mu: no program starts after Close
	runs   sync.WaitGroup // of programs; Add is called with mu held
}

type listed struct {
	argv     []string
	programs *confined.Runner
}

// errClosed means that the worker ends.
var errClosed = errors.New("the worker is shutting down")

// New checks the list. The error is a *messages.FieldError.
func New(cfg Config, run process.Runner) (*Hooks, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	h := &Hooks{commands: map[string]listed{}}
	for _, name := range slices.Sorted(maps.Keys(cfg.Commands)) {
		c := cfg.Commands[name]
		programs, err := confined.New(c.Config, run)
		if err != nil {
			return nil, strict.Under("commands."+name, err)
		}
		h.commands[name] = listed{argv: c.Argv, programs: programs}
	}
	return h, nil
}

// Ready names the commands that cannot be confined as the operator requires, with the reason. They fail whenever they are called.
func (h *Hooks) Ready() error {
	if h == nil {
		return nil
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(h.commands)) {
		if err := h.commands[name].programs.Ready(); err != nil {
			errs = append(errs, fmt.Errorf("hook command %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// Close waits until the programs that run have ended, each for at most the timeout of its hook. Later calls fail.
func (h *Hooks) Close() {
	if h == nil {
		return
	}
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.runs.Wait()
}

// Hook makes an agent's hook, or says why this worker does not run its command.
func (h *Hooks) Hook(hook messages.Hook) (func(context.Context, messages.HookCall) (messages.HookAnswer, error), error) {
	if h == nil {
		return nil, errors.New("command hooks are off: the operator lists commands in the part hooks of the file of LONGSHORE_TOOLS")
	}
	c, ok := h.commands[hook.Command]
	if !ok {
		return nil, fmt.Errorf("the command %s is not one that the operator listed in the part hooks of the file of LONGSHORE_TOOLS", strict.Shown(hook.Command))
	}
	return func(ctx context.Context, call messages.HookCall) (messages.HookAnswer, error) {
		return h.call(ctx, c, call)
	}, nil
}

func (h *Hooks) call(ctx context.Context, c listed, call messages.HookCall) (messages.HookAnswer, error) {
	input, err := json.Marshal(call)
	if err != nil {
		return messages.HookAnswer{}, fmt.Errorf("encode hook: %w", err)
	}
	if !h.begin() {
		return messages.HookAnswer{}, errClosed
	}
	defer h.runs.Done()
	if err := c.programs.Ready(); err != nil {
		return messages.HookAnswer{}, err
	}
	ran, err := c.programs.Run(ctx, &tools.Call{}, confined.Program{
		Path: c.argv[0], Args: c.argv[1:], Env: []string{variable + "=" + string(call.On)}, Stdin: append(input, '\n'),
		Limits: process.Limits{Output: maxOutput},
	})
	if err != nil {
		return messages.HookAnswer{}, err
	}
	return judge(&ran, call.On)
}

// begin reports whether a program may start.
func (h *Hooks) begin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.runs.Add(1)
	return true
}

// judge is what a program's end means.
func judge(ran *confined.Ran, on messages.HookPoint) (a messages.HookAnswer, _ error) {
	exited := ran.Reason == process.Exited && ran.Signal == ""
	switch {
	case exited && ran.ExitCode == exitDeny && on.Decides():
		return messages.HookAnswer{Decision: messages.HookDeny, Reason: strings.TrimSpace(confined.Text(ran.Stderr))}, nil
	case !ran.Clean():
		return a, errors.New(failure(ran))
	case !on.Decides():
		return a, nil
	case len(ran.Stdout) > maxAnswer:
		return a, fmt.Errorf("the answer is larger than %d bytes", maxAnswer)
	case len(bytes.TrimSpace(ran.Stdout)) == 0:
		return a, nil
	}
	if err := strict.Decode(ran.Stdout, &a); err != nil {
		return messages.HookAnswer{}, fmt.Errorf("the answer on standard output is not valid: %w", err)
	}
	return a, a.Validate()
}

// failure says how a program failed, with the end of what it wrote to its standard error.
func failure(ran *confined.Ran) string {
	text := strings.TrimSpace(confined.Text(ran.Stderr))
	if text == "" {
		return ran.Ending()
	}
	if len(text) > maxFailure {
		text = "…" + strings.ToValidUTF8(text[len(text)-maxFailure:], "")
	}
	return ran.Ending() + ": " + text
}
