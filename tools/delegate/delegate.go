// Package delegate is the tool with which a model hands sub-tasks to other agents. It checks what the model asks for and says so
// in its result; it makes no run itself. The runner does that, after the children are named in the log, and the run waits parked
// until enough of them have ended.
package delegate

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/tools"
)

// Limits of the input of sub-tasks, in bytes.
const (
	maxInput  = 64 << 10
	maxInputs = 512 << 10 // of all together
)

//go:embed delegate.md
var description string

type arguments struct {
	Tasks     []subtask `json:"tasks" jsonschema:"What should be done: 1 to 64 sub-tasks"`
	Wait      string    `json:"wait,omitempty" jsonschema:"What to wait for: all (default), first or quorum"`
	Quorum    int       `json:"quorum,omitempty" jsonschema:"With wait quorum: how many must complete"`
	OnFailure string    `json:"onFailure,omitempty" jsonschema:"return (default) or fail: what happens to the call if too few complete"`
}

type subtask struct {
	Agent string `json:"agent" jsonschema:"The name of the agent"`
	Input string `json:"input" jsonschema:"What it should do, with everything that it needs to know"`
}

// Tools are delegate.
func Tools() ([]tools.Tool, error) {
	t, err := tools.Func(messages.ToolSpec{
		Name: messages.ToolDelegate, Effect: messages.EffectIdempotent, SafeByDefault: true, Description: strings.TrimSpace(description),
	}, delegate)
	if err != nil {
		return nil, err
	}
	return []tools.Tool{t}, nil
}

func delegate(_ context.Context, c tools.Call, in arguments) (tools.Result, error) {
	if why := in.check(c.Delegate); why != "" {
		return tools.Failure(why), nil
	}
	d := &tools.Delegation{Need: len(in.Tasks), OnFailure: in.OnFailure}
	for _, t := range in.Tasks {
		d.Tasks = append(d.Tasks, tools.Subtask{Agent: t.Agent, Input: t.Input})
	}
	switch in.Wait {
	case messages.WaitFirst:
		d.Need = 1
	case messages.WaitQuorum:
		d.Need = in.Quorum
	default:
		d.Any = in.OnFailure != messages.OnChildFail
	}
	return tools.Result{Delegation: d}, nil
}

// check says what is wrong, for the model; empty: nothing.
func (in *arguments) check(may *messages.Delegate) string {
	switch {
	case may.Levels() == 0:
		return "This agent may not hand out sub-tasks: do it yourself."
	case len(in.Tasks) == 0 || len(in.Tasks) > messages.MaxChildren:
		return fmt.Sprintf("tasks: give 1 to %d.", messages.MaxChildren)
	case !slices.Contains([]string{"", messages.WaitAll, messages.WaitFirst, messages.WaitQuorum}, in.Wait):
		return "wait: must be all, first or quorum."
	case in.Wait == messages.WaitQuorum && (in.Quorum < 1 || in.Quorum > len(in.Tasks)):
		return fmt.Sprintf("quorum: must be 1 to %d, the number of tasks.", len(in.Tasks))
	case in.Wait != messages.WaitQuorum && in.Quorum != 0:
		return "quorum: only with wait quorum."
	case !slices.Contains([]string{"", messages.OnChildReturn, messages.OnChildFail}, in.OnFailure):
		return "onFailure: must be return or fail."
	}
	size := 0
	for i, t := range in.Tasks {
		size += len(t.Input)
		switch {
		case !slices.Contains(may.Agents, t.Agent):
			return fmt.Sprintf("tasks[%d].agent: %q is none of the agents that you may ask: %s.", i, strict.Shown(t.Agent), strings.Join(may.Agents, ", "))
		case strings.TrimSpace(t.Input) == "":
			return fmt.Sprintf("tasks[%d].input: is empty.", i)
		case len(t.Input) > maxInput:
			return fmt.Sprintf("tasks[%d].input: longer than %d bytes; put the rest where the agent can read it.", i, maxInput)
		case !utf8.ValidString(t.Input) || strings.ContainsRune(t.Input, 0):
			return fmt.Sprintf("tasks[%d].input: must be text.", i)
		}
	}
	if size > maxInputs {
		return fmt.Sprintf("tasks: the inputs are longer than %d bytes together.", maxInputs)
	}
	return ""
}
