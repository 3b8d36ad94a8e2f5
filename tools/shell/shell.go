// Package shell is the tool with which a model runs programs: in the sandbox, in the run's workspace, and only those that the
// operator lists and the agent's grants leave. A program gets its arguments as they are; a shell reads them only where the
// operator grants it. It is off until the operator grants it.
package shell

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/sandbox/process"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/confined"
)

// Name is that of the tool.
const Name = "shell"

// sh reads a command that is one text.
const sh = "sh"

var (
	//go:embed shell.md
	description string
	//go:embed shell_string.md
	stringDescription string
)

// Arguments of the tool: without and with commands that a shell reads.
type (
	args struct {
		Argv    []string `json:"argv"              jsonschema:"The program and its arguments, each as it is: no shell reads them. Such as [\"git\",\"log\",\"-3\"]"`
		Dir     string   `json:"dir,omitempty"     jsonschema:"Folder of the workspace to run in; the workspace itself by default"`
		Seconds int      `json:"seconds,omitempty" jsonschema:"How long it may run at most; the operator sets the default and the maximum"`
	}
	stringArgs struct {
		Argv    []string `json:"argv,omitempty"    jsonschema:"The program and its arguments, each as it is: no shell reads them. Such as [\"git\",\"log\",\"-3\"]"`
		Command string   `json:"command,omitempty" jsonschema:"A command for sh, in place of argv. Such as: grep -c x *.txt | sort"`
		Dir     string   `json:"dir,omitempty"     jsonschema:"Folder of the workspace to run in; the workspace itself by default"`
		Seconds int      `json:"seconds,omitempty" jsonschema:"How long it may run at most; the operator sets the default and the maximum"`
	}
)

// Limits of arguments.
const (
	maxArgs    = 1 << 10
	maxArg     = 128 << 10 // bytes, what the kernel takes
	maxCommand = 64 << 10
	maxSeconds = 3600
)

// Tool is shell. Errors are *messages.FieldError about the configuration.
func Tool(cfg Config, run process.Runner) (tools.Tool, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	programs, err := confined.New(cfg.Config, run)
	if err != nil {
		return nil, err
	}
	s := &shell{cfg: cfg, programs: programs}
	spec := messages.ToolSpec{Name: Name, Effect: cfg.Effect, Description: strings.TrimSpace(description)}
	var made tools.Tool
	if cfg.ShellString {
		spec.Description += " " + strings.TrimSpace(stringDescription)
		made, err = tools.Func(spec, s.call)
	} else {
		made, err = tools.Func(spec, func(ctx context.Context, c tools.Call, in args) (tools.Result, error) {
			return s.call(ctx, c, stringArgs{Argv: in.Argv, Dir: in.Dir, Seconds: in.Seconds})
		})
	}
	if err != nil {
		return nil, err
	}
	return confined.Tool{Tool: made, Runner: programs}, nil
}

type shell struct {
	cfg      Config
	programs *confined.Runner
}

func (s *shell) call(ctx context.Context, c tools.Call, in stringArgs) (tools.Result, error) {
	if reason := in.wrong(); reason != "" {
		return invalid(reason), nil
	}
	argv := in.Argv
	if in.Command != "" {
		argv = []string{sh, "-c", in.Command}
	}
	if reason := s.refuses(argv[0], &c.Grants); reason != "" {
		r := tools.Failure("Refused: " + reason + ".")
		r.Code = messages.CodePolicy
		return r, nil
	}
	ran, err := s.programs.Run(ctx, &c, confined.Program{
		Path: argv[0], Args: argv[1:], Dir: in.Dir, Limits: process.Limits{Wall: time.Duration(in.Seconds) * time.Second},
	})
	if err != nil {
		if r, ok := confined.Refusal(err); ok {
			return r, nil
		}
		return tools.Result{}, err
	}
	return ran.Told(), nil
}

// wrong says what is wrong with the arguments; empty: nothing.
func (in *stringArgs) wrong() string {
	switch {
	case in.Command != "" && in.Argv != nil:
		return `"argv" and "command" are both set: give one`
	case in.Command == "" && (len(in.Argv) == 0 || in.Argv[0] == ""):
		return `"argv" must begin with the name of a program`
	case len(in.Argv) > maxArgs:
		return fmt.Sprintf(`"argv" has more than %d elements`, maxArgs)
	case len(in.Command) > maxCommand:
		return fmt.Sprintf(`"command" is longer than %d bytes: write a script into a file and run it`, maxCommand)
	case strings.ContainsRune(in.Command, 0):
		return `"command" holds a zero byte`
	case in.Seconds < 0 || in.Seconds > maxSeconds:
		return fmt.Sprintf(`"seconds" must be 1 to %d`, maxSeconds)
	}
	for i, arg := range in.Argv {
		if len(arg) > maxArg || strings.ContainsRune(arg, 0) {
			return fmt.Sprintf(`"argv[%d]" holds a zero byte or is longer than %d bytes`, i, maxArg)
		}
	}
	return ""
}

// refuses says why a program must not be started; empty: it may be.
func (s *shell) refuses(program string, g *messages.Grants) string {
	switch {
	case !s.cfg.grants(program):
		return fmt.Sprintf("the program %q is not one that the operator lists (%s)", short(program), strings.Join(s.cfg.Programs, ", "))
	case !messages.Leaves(g.Programs, program):
		return fmt.Sprintf("the program %q is not in the agent's grants", short(program))
	default:
		return ""
	}
}

// short is enough of a name to know it by.
func short(name string) string {
	const most = 64
	if len(name) > most {
		return strings.ToValidUTF8(name[:most], "") + "…"
	}
	return name
}

func invalid(reason string) tools.Result {
	r := tools.Failure("Invalid arguments: " + reason + ".")
	r.Code = messages.CodeInvalidInput
	return r
}
