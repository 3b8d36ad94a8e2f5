package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
)

// A task with an id of its own may be submitted again when an answer was lost: it is one run, and another task with that
// id is refused.
func ExampleClient_Wait() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, stop, err := startFleet(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()

	task := messages.Task{ID: "greeting", Input: messages.TextInput("Greet the harbour.")}
	for range 2 {
		if _, err := client.Submit(ctx, task); err != nil {
			fmt.Println(err)
			return
		}
	}
	result, err := client.Wait(ctx, dispatcher.Run("greeting"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Status, result.Result)

	task.Input = messages.TextInput("Greet the lighthouse.")
	_, err = client.Submit(ctx, task)
	fmt.Println(errors.Is(err, dispatcher.ErrConflict))

	_, err = client.Status(ctx, dispatcher.Run("farewell"))
	fmt.Println(errors.Is(err, dispatcher.ErrNotFound))
	// Output:
	// completed Hello, harbour.
	// true
	// true
}
