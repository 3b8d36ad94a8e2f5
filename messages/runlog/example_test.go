package runlog_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

// An append says which entry it follows. Of two writers that saw the same end of a log one succeeds, and the other
// reads again and decides anew.
func ExampleMemory() {
	ctx, run := context.Background(), messages.Ref{Tenant: "acme", Run: "greeting"}
	var log runlog.Memory
	entry := func(id string, prev record.Head, r record.Record) record.Entry {
		head := record.Follow(prev, r)
		head.ID = id
		return record.Entry{Head: head, Records: []record.Record{r}}
	}
	first := entry("e-1", record.Head{}, &record.Started{Task: messages.Task{Input: messages.TextInput("Say hello.")}})
	fmt.Println(log.Append(ctx, run, 0, first))
	fmt.Println(log.Append(ctx, run, 1, entry("e-2", first.Head, &record.Claimed{Claim: "c-1", Worker: "w-1"})))
	fmt.Println(log.Append(ctx, run, 1, entry("e-3", first.Head, &record.Claimed{Claim: "c-2", Worker: "w-2"})))
	fmt.Println(log.Append(ctx, run, 0, first)) // its answer was lost, so the writer tries again
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 0 the log has grown
	// 1 <nil>
}

// A party that does not own a run may tell it something. The id makes it safe to send twice.
func ExampleController_Steer() {
	ctx, run := context.Background(), messages.Ref{Tenant: "acme", Run: "report"}
	n := 0
	controller := runlog.Controller{
		Log: &runlog.Memory{},
		Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
		NewID: func() string {
			n++
			return fmt.Sprint("e-", n)
		},
	}
	message := &record.Steered{ID: "m-1", By: "ada", Message: "Use metric units."}
	_, err := controller.Steer(ctx, run, message)
	fmt.Println(errors.Is(err, runlog.ErrNotFound))

	if _, err := controller.Begin(ctx, run, &record.Started{Task: messages.Task{Input: messages.TextInput("Write the report.")}}); err != nil {
		panic(err)
	}
	for range 2 {
		e, err := controller.Steer(ctx, run, message)
		fmt.Println(e.Seq, err)
	}
	_, err = controller.Steer(ctx, run, &record.Steered{ID: "m-1", By: "ada", Message: "Use miles."})
	fmt.Println(errors.Is(err, runlog.ErrTold))
	// Output:
	// true
	// 2 <nil>
	// 2 <nil>
	// true
}
