package stage

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

// textSize is the size of the task's input, of each model reply and of each tool result, in bytes.
const textSize = 500

// steps is how many model calls a run has, if nothing else is asked for.
const steps = 3

const (
	agentName = "bench"
	longName  = "long"
	toolName  = "noop"
)

// text is a text of the workload: words, so that it is escaped and redacted like any other.
func text() string { return strings.Repeat("all work and no play ", textSize/21+1)[:textSize] }

// Task is one task of the workload.
func Task() messages.Task {
	return messages.Task{Agent: agentName, Input: messages.TextInput(text())}
}

// LongTask is one whose run may have more steps than an agent allows by default.
func LongTask() messages.Task {
	return messages.Task{Agent: longName, Input: messages.TextInput(text())}
}

// Agents are those of the workload.
func Agents() []messages.Definition {
	return []messages.Definition{
		{Name: agentName, Description: "Two tool calls and an answer.", Tools: []string{toolName}},
		{
			Name: longName, Description: "Many tool calls and an answer.", Tools: []string{toolName}, MaxSteps: messages.MaxStepsOf,
			RepeatLimit: new(int), // all calls are the same
		},
	}
}

// turns plays model calls, each after a delay: all but the last ask for the tool, and that one ends the run. A script of all turns could
// not be long enough.
type turns struct {
	steps     int
	call, end model.Provider
}

var _ model.Provider = (*turns)(nil)

func newTurns(steps int, delay time.Duration) (*turns, error) {
	call, err := script(fmt.Sprintf("{text: %q, chunk: %d, delay: %s, calls: [{name: %s, arguments: {}}]}", text(), textSize, delay, toolName))
	if err != nil {
		return nil, err
	}
	end, err := script(fmt.Sprintf("{text: %q, chunk: %d, delay: %s}", text(), textSize, delay))
	return &turns{steps, call, end}, err
}

// script plays one turn, again and again.
func script(turn string) (model.Provider, error) {
	s, err := scripted.Parse([]byte("scenes:\n  - repeat: true\n    turns:\n      - " + turn + "\n"))
	if err != nil {
		return nil, fmt.Errorf("parse script: %w", err)
	}
	return scripted.New(s), nil
}

// Stream implements model.Provider.
func (t *turns) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	replies := 0
	for i := range r.Messages {
		if r.Messages[i].Role == messages.RoleAssistant {
			replies++
		}
	}
	if replies+1 < t.steps {
		return t.call.Stream(ctx, r)
	}
	return t.end.Stream(ctx, r)
}

// noop is a tool that does nothing.
func noop() (tools.Tool, error) {
	spec := messages.ToolSpec{Name: toolName, Description: "Does nothing.", Effect: messages.EffectRead}
	result := text()
	t, err := tools.Func(spec, func(context.Context, tools.Call, struct{}) (tools.Result, error) {
		return tools.Text(result), nil
	})
	if err != nil {
		return nil, fmt.Errorf("make tool: %w", err)
	}
	return t, nil
}
