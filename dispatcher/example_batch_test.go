package dispatcher_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
)

// One task for each line of a file. Results come with the custom_id of their line.
func ExampleBatches_Submit() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, stop, err := startFleet(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()

	file := `{"custom_id": "north", "input": "Greet the north pier."}
{"custom_id": "south", "input": "Greet the south pier."}
`
	ref := dispatcher.BatchOf("greetings") // submitting the same file under the same id again makes no second batch
	batch, err := client.Batches().Submit(ctx, dispatcher.BatchSpec{BatchRef: ref}, dispatcher.ReadLines(strings.NewReader(file)))
	if err != nil {
		fmt.Println(err)
		return
	}
	every := time.NewTicker(50 * time.Millisecond) // a program may look less often, or have a webhook told
	defer every.Stop()
	for !batch.Status.Ended() {
		select {
		case <-every.C:
		case <-ctx.Done():
			fmt.Println(ctx.Err())
			return
		}
		if batch, err = client.Batches().Get(ctx, ref); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(batch.Status, batch.Counts.Completed, "of", batch.Counts.Total)
	for outcome, err := range client.Batches().Results(ctx, ref, dispatcher.ByInput) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(outcome.Line, outcome.CustomID, outcome.Status, outcome.Result.Text)
	}
	// Output:
	// completed 2 of 2
	// 1 north completed Hello, harbour.
	// 2 south completed Hello, harbour.
}
