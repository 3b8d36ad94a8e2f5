package agenttest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/sandbox/process"
)

// Command is what an agent runs with shell or run_code.
type Command struct {
	Argv  []string           // of shell; a command that a shell reads is sh, -c and the command
	Code  string             // of run_code
	Dir   string             // below the workspace
	Files *sandbox.Workspace // of the run; nil: none
}

// String is the command as [Programs] knows it: the code, the text that a shell reads, or the words of argv with a space between them.
func (c Command) String() string {
	switch {
	case c.Code != "":
		return c.Code
	case len(c.Argv) == 3 && c.Argv[0] == "sh" && c.Argv[1] == "-c":
		return c.Argv[2]
	default:
		return strings.Join(c.Argv, " ")
	}
}

// Ended is how a stubbed program ends. The zero value is exit code 0 without output.
type Ended struct {
	Stdout   string
	Stderr   string
	ExitCode int
	Reason   process.Reason // default process.Exited; with another one the program was stopped
	Err      error          // it did not run: a *process.CommandError is told to the model, any other is the platform's
}

// Sandbox stands for the sandbox in tests of agents: no program runs, and none of the layers need be there. It is the runner that
// shell.Tool and code.Tool take, so arguments, lists of programs and grants are checked as in a worker. Safe for concurrent use.
type Sandbox struct {
	end func(Command) Ended

	mu  sync.Mutex
	ran []Command
}

var _ process.Runner = (*Sandbox)(nil)

// Programs scripts commands by their text, see [Command.String]. One that is not scripted fails the test, and is refused.
func Programs(tb testing.TB, scripted map[string]Ended) *Sandbox {
	return ProgramFunc(func(c Command) Ended {
		end, ok := scripted[c.String()]
		if !ok {
			tb.Errorf("the agent runs %q, which the test does not script; it scripts %q", c.String(), slices.Sorted(maps.Keys(scripted)))
			return Ended{Err: &process.CommandError{Field: "path", Reason: "is not scripted by the test"}}
		}
		return end
	})
}

// ProgramFunc makes the end of each command. It may read and write the command's files.
func ProgramFunc(f func(Command) Ended) *Sandbox { return &Sandbox{end: f} }

// Commands are what ran so far, those that did not run for Err included.
func (s *Sandbox) Commands() []Command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clip(s.ran)
}

// Layers implements process.Runner: all of them, whatever a configuration requires.
func (s *Sandbox) Layers() process.Layers {
	return process.LayerLandlock | process.LayerSeccomp | process.LayerLimits | process.LayerNamespaces | process.LayerProcesses | process.LayerCgroup
}

// Run implements process.Runner.
func (s *Sandbox) Run(ctx context.Context, c process.Command) (process.Result, error) {
	if ctx.Err() != nil {
		return process.Result{}, context.Cause(ctx)
	}
	command, err := commandOf(&c)
	if err != nil {
		return process.Result{}, err
	}
	if c.Begin != nil {
		if err := c.Begin(); err != nil {
			return process.Result{}, err
		}
	}
	s.mu.Lock()
	s.ran = append(s.ran, command)
	s.mu.Unlock()
	end := s.end(command)
	if end.Err != nil {
		return process.Result{}, end.Err
	}
	if end.Reason == "" {
		end.Reason = process.Exited
	}
	if c.Output != nil && end.Stdout != "" {
		c.Output(process.Stdout, []byte(end.Stdout))
	}
	if c.Output != nil && end.Stderr != "" {
		c.Output(process.Stderr, []byte(end.Stderr))
	}
	return process.Result{
		ExitCode: end.ExitCode, Reason: end.Reason, Stdout: []byte(end.Stdout), Stderr: []byte(end.Stderr), Layers: s.Layers(),
	}, nil
}

// commandOf finds the code of run_code in what its process would read: JSON for JavaScript, the code itself for Python.
func commandOf(c *process.Command) (Command, error) {
	command := Command{Dir: c.Dir, Files: c.Workspace}
	switch {
	case c.Stdin == nil:
		command.Argv = append([]string{c.Path}, c.Args...)
	case slices.Equal(c.Args, []string{"-"}):
		command.Code = string(c.Stdin)
	default:
		var program struct {
			Code string `json:"code"`
		}
		if err := json.Unmarshal(c.Stdin, &program); err != nil {
			return command, fmt.Errorf("read the program of run_code: %w", err)
		}
		command.Code = program.Code
	}
	return command, nil
}
