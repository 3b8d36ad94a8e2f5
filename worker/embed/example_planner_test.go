package embed_test

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/embed"
	"github.com/longshore-run/longshore/worker/model/planner"
)

// A custom planner decides each step where a model would be asked: here it looks at the weather, and then answers.
func Example_planner() {
	weather, err := tools.Func(messages.ToolSpec{Name: "weather", Description: "The weather of a city.", Effect: messages.EffectRead},
		func(_ context.Context, _ tools.Call, in place) (tools.Result, error) {
			return tools.Text("rain in " + in.City), nil
		})
	if err != nil {
		panic(err)
	}
	decide := func(_ context.Context, s planner.State) (planner.Step, error) {
		results := s.Results()
		if len(results) == 0 {
			return planner.Step{Calls: []messages.ToolCall{{Name: "weather", Arguments: `{"city":"Hamburg"}`}}}, nil
		}
		return planner.Step{Text: "There is " + results[0].Content[0].Text + "."}, nil
	}
	own, err := planner.New(planner.Config{Name: "forecast", Planner: planner.Func(decide)})
	if err != nil {
		panic(err)
	}
	service, err := embed.New(embed.Config{Model: own, Tools: []tools.Tool{weather}})
	if err != nil {
		panic(err)
	}
	result, err := service.RunOnce(context.Background(), messages.Task{Input: messages.TextInput("What is the weather like?")})
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Result)
	// Output: There is rain in Hamburg.
}
