package embed_test

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/agenttest"
	"github.com/longshore-run/longshore/worker/embed"
)

// Events are read at the consumer's own pace, in a goroutine of their own or after the run. Steps, ToolCalls, Replies,
// Errors and Metrics pick some, with their data as structs.
func ExampleSession_Events() {
	weather, err := tools.Func(messages.ToolSpec{Name: "weather", Description: "The weather of a city.", Effect: messages.EffectRead},
		func(_ context.Context, _ tools.Call, in place) (tools.Result, error) {
			return tools.Text("rain in " + in.City), nil
		})
	if err != nil {
		panic(err)
	}
	service, err := embed.New(embed.Config{
		Model: agenttest.Replies(agenttest.Call("weather", `{"city":"Hamburg"}`), agenttest.Text("Take an umbrella.")),
		Tools: []tools.Tool{weather},
	})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	session, err := service.Session(messages.Task{Input: messages.TextInput("What is the weather like?")})
	if err != nil {
		panic(err)
	}
	shown := make(chan struct{})
	go func() {
		defer close(shown)
		for call, err := range embed.ToolCalls(session.Events(ctx)) {
			if err != nil {
				panic(err)
			}
			fmt.Println(call.Name(), call.Data.Arguments+call.Data.Result)
		}
	}()
	if _, err := session.Run(ctx); err != nil {
		panic(err)
	}
	<-shown
	for sum, err := range embed.Metrics(session.Events(ctx)) {
		if err != nil {
			panic(err)
		}
		fmt.Println(sum.Data.Steps, "steps")
	}
	// Output:
	// tool_execution_start {"city":"Hamburg"}
	// tool_execution_end rain in Hamburg
	// 2 steps
}
