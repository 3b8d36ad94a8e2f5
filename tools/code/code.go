// Package code is the tool with which a model runs a program that it writes: in JavaScript, on an engine that the worker brings
// along, or in Python, where the operator names an interpreter. Each program is a process of its own in the sandbox. It works on the
// files of the run's workspace, and imports packages from a folder that the operator names, and from nowhere else. It is off until
// the operator grants it.
package code

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/sandbox/process"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/tools/code/engine"
	"github.com/longshore-run/longshore/tools/confined"
)

// Name is that of the tool.
const Name = "run_code"

var (
	//go:embed javascript.md
	aboutJavaScript string
	//go:embed python.md
	aboutPython string
)

type args struct {
	Language string `json:"language"          jsonschema:"The language of the code"`
	Code     string `json:"code"              jsonschema:"The program. What it prints is the result"`
	Seconds  int    `json:"seconds,omitempty" jsonschema:"How long it may run at most; the operator sets the default and the maximum"`
}

// Limits and defaults.
const (
	maxCode       = 256 << 10
	maxSeconds    = 3600
	defaultTime   = 10 * time.Second
	defaultMemory = 64 << 20 // of JavaScript

	// The process of the engine needs memory of its own, and reserves more addresses than it uses.
	engineMemory    = 256 << 20
	engineAddresses = 4 << 30
	// The engine stops a program at its time; the process is stopped a moment later.
	engineTime = 2 * time.Second
)

// Tool is run_code. The executable is that of the process, whose main calls engine.Main first. Errors are *messages.FieldError about
// the configuration.
func Tool(cfg Config, run process.Runner, executable string) (tools.Tool, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if cfg.Limits.Time == 0 {
		cfg.Limits.Time = messages.Duration(defaultTime)
	}
	programs, err := confined.New(cfg.Config, run)
	if err != nil {
		return nil, err
	}
	c := &coder{cfg: cfg, programs: programs, executable: executable}
	schema, err := jsonschema.For[args](nil)
	if err != nil {
		return nil, fmt.Errorf("infer input schema: %w", err)
	}
	description := strings.TrimSpace(aboutJavaScript)
	for _, language := range cfg.languages() {
		schema.Properties["language"].Enum = append(schema.Properties["language"].Enum, language)
	}
	if cfg.Python != "" {
		description += "\n\n" + strings.TrimSpace(aboutPython)
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil, fmt.Errorf("write input schema: %w", err)
	}
	made, err := tools.Func(messages.ToolSpec{Name: Name, Effect: messages.EffectOnce, Description: description, InputSchema: raw}, c.call)
	if err != nil {
		return nil, err
	}
	return confined.Tool{Tool: made, Runner: programs}, nil
}

type coder struct {
	cfg        Config
	programs   *confined.Runner
	executable string
}

func (c *coder) call(ctx context.Context, call tools.Call, in args) (tools.Result, error) {
	if reason := in.wrong(); reason != "" {
		r := tools.Failure("Invalid arguments: " + reason + ".")
		r.Code = messages.CodeInvalidInput
		return r, nil
	}
	program, err := c.program(&call, in)
	if err != nil {
		return tools.Result{}, err
	}
	ran, err := c.programs.Run(ctx, &call, program)
	if err != nil {
		if r, ok := confined.Refusal(err); ok {
			return r, nil
		}
		return tools.Result{}, err
	}
	r := ran.Told()
	r.Meta["language"] = in.Language
	return r, nil
}

// wrong says what is wrong with the arguments; empty: nothing.
func (in *args) wrong() string {
	switch {
	case len(in.Code) > maxCode:
		return fmt.Sprintf(`"code" is longer than %d bytes`, maxCode)
	case strings.ContainsRune(in.Code, 0):
		return `"code" holds a zero byte`
	case in.Seconds < 0 || in.Seconds > maxSeconds:
		return fmt.Sprintf(`"seconds" must be 1 to %d`, maxSeconds)
	default:
		return ""
	}
}

// program is the process that runs the code.
func (c *coder) program(call *tools.Call, in args) (confined.Program, error) {
	limits := process.Limits{Wall: time.Duration(in.Seconds) * time.Second}
	packages := c.cfg.Packages[in.Language]
	var folders []string
	if packages != "" {
		folders = []string{packages}
	}
	if in.Language == python {
		env := []string{"PYTHONDONTWRITEBYTECODE=1", "PYTHONNOUSERSITE=1", "PYTHONUNBUFFERED=1", "PYTHONIOENCODING=utf-8"}
		if packages != "" {
			env = append(env, "PYTHONPATH="+packages)
		}
		return confined.Program{
			Path: c.cfg.Python, Args: []string{"-"}, Env: env, Stdin: []byte(in.Code), Folders: append(folders, c.cfg.Python), Limits: limits,
		}, nil
	}
	memory := c.cfg.Limits.Memory
	if memory == 0 {
		memory = defaultMemory
	}
	wall := c.programs.Wall(call, limits.Wall)
	text, err := json.Marshal(engine.Program{Code: in.Code, Time: wall, Memory: memory, Packages: packages})
	if err != nil {
		return confined.Program{}, fmt.Errorf("write program: %w", err)
	}
	return confined.Program{
		Path: c.executable, Args: []string{engine.Arg}, Env: []string{"GOMAXPROCS=2", "GOTRACEBACK=none"}, Stdin: text, Offline: true, Folders: append(folders, c.executable), More: engineTime,
		Limits: process.Limits{Wall: wall, Memory: memory + engineMemory, AddressSpace: memory + engineAddresses},
	}, nil
}
