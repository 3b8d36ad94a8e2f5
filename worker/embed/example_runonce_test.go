package embed_test

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/agenttest"
	"github.com/longshore-run/longshore/worker/embed"
)

// RunOnce takes one task to its end. Close waits for what is under way, here for a second at most.
func ExampleService_RunOnce() {
	service, err := embed.New(embed.Config{Model: agenttest.Replies(agenttest.Text("Hello."))})
	if err != nil {
		panic(err)
	}
	result, err := service.RunOnce(context.Background(), messages.Task{Input: messages.TextInput("Say hello.")})
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Status, "-", result.Result)

	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := service.Close(ctx); err != nil {
		panic(err)
	}
	_, err = service.RunOnce(context.Background(), messages.Task{Input: messages.TextInput("Say hello.")})
	fmt.Println(err)
	// Output:
	// completed - Hello.
	// the service is closed
}
