package embed_test

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/embed"
	"github.com/longshore-run/longshore/worker/model/scripted"
	"github.com/longshore-run/longshore/worker/runner"
)

const script = `
scenes:
  - match: weather
    turns:
      - calls: [{name: weather, arguments: {city: Hamburg}}]
      - text: "In Hamburg: ${lastToolResult}"
`

type place struct {
	City string `json:"city"`
}

// A service is made once, with a model, an agent and its tools; a session is one run.
func Example() {
	weather, err := tools.Func(messages.ToolSpec{Name: "weather", Description: "The weather of a city.", Effect: messages.EffectRead},
		func(_ context.Context, _ tools.Call, in place) (tools.Result, error) {
			return tools.Text("rain, as ever, in " + in.City), nil
		})
	if err != nil {
		panic(err)
	}
	play, err := scripted.Parse([]byte(script))
	if err != nil {
		panic(err)
	}
	service, err := embed.New(embed.Config{
		Model: scripted.New(play), // or openai.New, anthropic.New, a model.Router of several
		Agent: messages.Definition{Name: "forecaster", Instructions: "You know the weather."},
		Tools: []tools.Tool{weather},
	})
	if err != nil {
		panic(err)
	}
	session, err := service.Session(messages.Task{Input: messages.TextInput("What is the weather like?")})
	if err != nil {
		panic(err)
	}
	session.On(func(e messages.Event) { fmt.Println(e.Name()) })
	result, err := session.Run(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Status, "-", result.Result)
	// Output:
	// run_queued
	// run_started
	// step_start
	// message_end
	// tool_execution_start
	// tool_execution_end
	// step_end
	// step_start
	// message_end
	// step_end
	// turn_end
	// run_finished
	// completed - In Hamburg: rain, as ever, in Hamburg
}

// A hook is asked before a tool is called, and its refusal is the tool's answer.
func ExampleConfig_hooks() {
	play, err := scripted.Parse([]byte("scenes: [{turns: [{calls: [{name: launch, arguments: {}}]}, {text: I may not.}]}]"))
	if err != nil {
		panic(err)
	}
	launch, err := tools.Func(messages.ToolSpec{Name: "launch", Description: "Launches it.", Effect: messages.EffectOnce},
		func(context.Context, tools.Call, struct{}) (tools.Result, error) { return tools.Text("gone"), nil })
	if err != nil {
		panic(err)
	}
	service, err := embed.New(embed.Config{
		Model: scripted.New(play), Tools: []tools.Tool{launch},
		Hooks: []runner.Hook{{On: messages.HookPreTool, Func: func(_ context.Context, c messages.HookCall) (messages.HookAnswer, error) {
			return messages.HookAnswer{Decision: messages.HookDeny, Reason: "no run may call " + c.Tool.Name}, nil
		}}},
	})
	if err != nil {
		panic(err)
	}
	session, err := service.Session(messages.Task{Input: messages.TextInput("Launch it!")})
	if err != nil {
		panic(err)
	}
	result, err := session.Run(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Actions[0].Output)
	fmt.Println(result.Result)
	// Output:
	// Refused by a hook: no run may call launch
	// I may not.
}

// Abort ends a run from anywhere; its result is cancelled.
func ExampleSession_Abort() {
	play, err := scripted.Parse([]byte("scenes: [{turns: [{text: Hello., delay: 1h}]}]"))
	if err != nil {
		panic(err)
	}
	service, err := embed.New(embed.Config{Model: scripted.New(play)})
	if err != nil {
		panic(err)
	}
	session, err := service.Session(messages.Task{Input: messages.TextInput("Say hello.")})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	session.On(func(e messages.Event) {
		if e.Name() == messages.EventStepStart { // in a program: a button, a signal, a timeout
			go func() { _ = session.Abort(ctx, "I have changed my mind") }()
		}
	})
	result, err := session.Run(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Status, "-", result.Error.Message)
	// Output: cancelled - cancelled: I have changed my mind
}
