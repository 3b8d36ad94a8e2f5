package embed_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/agenttest"
	"github.com/longshore-run/longshore/worker/embed"
	"github.com/longshore-run/longshore/worker/model"
)

// A prompt of a store becomes the instructions of an agent when a run begins. A fleet's prompts are a store too: hand over
// its *dispatcher.Client.
func ExampleMemoryPrompts() {
	var prompts embed.MemoryPrompts
	if _, err := prompts.Put(messages.Prompt{ID: "greet", Text: "Greet {name} in a {tone} way."}); err != nil {
		panic(err)
	}
	service, err := embed.New(embed.Config{
		Model:   agenttest.Func(func(r model.Request) agenttest.Reply { return agenttest.Text(r.Messages[0].Text()) }),
		Prompts: &prompts,
		Agent:   messages.Definition{Name: "greeter", Prompt: &messages.PromptRef{ID: "greet", Vars: json.RawMessage(`{"tone":"kind"}`)}},
	})
	if err != nil {
		panic(err)
	}
	task := messages.Task{Input: messages.TextInput("Hello"), Context: json.RawMessage(`{"name":"Ann"}`)}
	result, err := service.RunOnce(context.Background(), task)
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Result)
	// Output: Greet Ann in a kind way.
}
