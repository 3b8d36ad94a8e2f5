package agenttest_test

import (
	"context"
	"fmt"
	"strconv"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/agenttest"
	"github.com/longshore-run/longshore/worker/embed"
)

type sum struct {
	A int `json:"a"`
	B int `json:"b"`
}

// Play stubs the model and tells what the run did. In a test, Run and Want do the same and fail it.
func Example() {
	add, err := tools.Func(messages.ToolSpec{Name: "add", Description: "Adds two numbers.", Effect: messages.EffectRead},
		func(_ context.Context, _ tools.Call, in sum) (tools.Result, error) {
			return tools.Text(strconv.Itoa(in.A + in.B)), nil
		})
	if err != nil {
		panic(err)
	}
	model := agenttest.Replies(
		agenttest.Call("add", `{"a": 1, "b": "two"}`),
		agenttest.Call("add", `{"a": 1, "b": 2}`),
		agenttest.Text("It is 3."),
	)
	run, err := agenttest.Play(context.Background(), agenttest.Config{Config: embed.Config{Model: model, Tools: []tools.Tool{add}}}, "What is 1 + 2?")
	if err != nil {
		panic(err)
	}
	for _, action := range run.Actions() {
		fmt.Println(action)
	}
	fmt.Println(run.Result.Result, "after", len(model.Requests()), "requests")
	// Output:
	// model
	// tool add: invalid_input
	// model
	// tool add
	// model
	// completed
	// It is 3. after 3 requests
}
