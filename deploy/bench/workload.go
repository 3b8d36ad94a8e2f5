package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

// textSize is the size of the task's input, of each model reply and of each tool result, in bytes.
const textSize = 500

const (
	agentName = "bench"
	toolName  = "noop"
)

// text is a text of the workload: words, so that it is escaped and redacted like any other.
func text() string { return strings.Repeat("all work and no play ", textSize/21+1)[:textSize] }

func task() messages.Task {
	return messages.Task{Agent: agentName, Input: messages.TextInput(text())}
}

func agents() []messages.Definition {
	return []messages.Definition{{Name: agentName, Description: "Two tool calls and an answer.", Tools: []string{toolName}}}
}

// script is three model calls, each after a delay: two ask for the tool, the last one ends the run.
func script(delay time.Duration) (model.Provider, error) {
	call := fmt.Sprintf("{text: %q, chunk: %d, delay: %s, calls: [{name: %s, arguments: {}}]}", text(), textSize, delay, toolName)
	end := fmt.Sprintf("{text: %q, chunk: %d, delay: %s}", text(), textSize, delay)
	s, err := scripted.Parse(fmt.Appendf(nil, "scenes:\n  - turns:\n      - %s\n      - %s\n      - %s\n", call, call, end))
	if err != nil {
		return nil, fmt.Errorf("parse script: %w", err)
	}
	return scripted.New(s), nil
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
