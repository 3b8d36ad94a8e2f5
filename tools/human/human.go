// Package human is the tool with which a model asks a person. The run waits parked for the answer and holds no worker.
package human

import (
	"context"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/tools"
)

const (
	// How long an answer is waited for.
	patience = 24 * time.Hour
	// Bounds a question, in bytes; events show the first KiB of it.
	maxQuestion = 8 << 10
)

type askArgs struct {
	Question string `json:"question" jsonschema:"What you need to know, in a sentence that a person understands without further context"`
}

// Tools are ask_human.
func Tools() ([]tools.Tool, error) {
	ask, err := tools.Func(messages.ToolSpec{
		Name: "ask_human", Effect: messages.EffectRead, SafeByDefault: true,
		Description: "Asks a person and returns the answer, which may take hours. Ask only what you cannot find out yourself.",
	}, askHuman)
	if err != nil {
		return nil, err
	}
	return []tools.Tool{ask}, nil
}

func askHuman(_ context.Context, _ tools.Call, in askArgs) (tools.Result, error) {
	question := strings.TrimSpace(in.Question)
	switch {
	case question == "":
		return tools.Failure("The question is empty."), nil
	case len(question) > maxQuestion:
		return tools.Failure("The question is longer than 8 KiB: ask in fewer words."), nil
	}
	return tools.Result{Park: &tools.Park{Reason: queue.ParkAnswer, For: patience, Question: question}}, nil
}
