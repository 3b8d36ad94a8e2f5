// Command go submits a task, follows its events and prints its result. Copy it into a program of your own: it links
// the client and nothing of the fleet.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	url := os.Getenv("NATS_URL")
	if url == "" {
		url = nats.DefaultURL
	}
	if err := run(ctx, url, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, url string, out io.Writer) error {
	// Without a buffer for reconnects a publish that failed is not stored later.
	nc, err := nats.Connect(url, nats.ReconnectBufSize(-1), nats.MaxReconnects(-1))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer nc.Close()
	client, err := dispatcher.New(ctx, nc)
	if err != nil {
		return fmt.Errorf("open the client: %w", err)
	}
	id, err := client.Submit(ctx, messages.Task{Input: messages.TextInput("Greet the harbour.")})
	if err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	for event, err := range client.Watch(ctx, dispatcher.Run(id)) { // from the first event to run_finished
		if err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		fmt.Fprintln(out, event.Sequence, event.Name())
	}
	result, err := client.Result(ctx, dispatcher.Run(id))
	if err != nil {
		return fmt.Errorf("take the result: %w", err)
	}
	fmt.Fprintf(out, "%s: %v\n", result.Status, result.Result)
	return nil
}
