package dispatcher_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

// startFleet starts a whole fleet in this process, with a scripted model. A program of yours connects to one.
func startFleet(ctx context.Context) (*dispatcher.Client, func() error, error) {
	script, err := scripted.Parse([]byte(`{scenes: [{turns: [{text: "Hello, harbour."}]}]}`))
	if err != nil {
		return nil, nil, err
	}
	var s settings.Dev
	if err := settings.Load(&s, nil); err != nil {
		return nil, nil, err
	}
	dev, err := fleet.StartDev(ctx, fleet.DevConfig{
		Dev: s, Version: "example",
		Log: slog.New(slog.DiscardHandler), Parts: fleet.Parts{Model: scripted.New(script)},
	})
	if err != nil {
		return nil, nil, err
	}
	client, err := dev.Client(ctx)
	return client, dev.Stop, err
}

// Submit a task, watch its steps, take its result.
func Example() {
	ctx := context.Background()
	client, stop, err := startFleet(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()

	id, err := client.Submit(ctx, messages.Task{ID: "greeting", Input: messages.TextInput("Greet the harbour.")})
	if err != nil {
		fmt.Println(err)
		return
	}
	for event, err := range client.Watch(ctx, dispatcher.Run(id)) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(event.Sequence, event.Name())
	}
	result, err := client.Result(ctx, dispatcher.Run(id))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Status, result.Result)
	// Output:
	// 1 run_queued
	// 2 run_started
	// 3 step_start
	// 4 message_end
	// 5 step_end
	// 6 turn_end
	// 7 run_finished
	// completed Hello, harbour.
}

// Show a reply while it is written. What is shown here may have holes; message_end, in Watch, brings the whole.
func ExampleClient_Live() {
	show := func(ctx context.Context, client *dispatcher.Client, run messages.Ref) {
		var reply messages.LiveReply
		for piece, err := range client.Live(ctx, run) { // until ctx ends
			if err != nil {
				return
			}
			if reply.Add(&piece) {
				fmt.Printf("\rstep %d: %s", reply.Step, reply.Text)
			}
		}
	}
	_ = show
}
