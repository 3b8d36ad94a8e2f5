package record_test

import (
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// Events follow from the log alone, their running numbers too, so an owner that publishes them again publishes the same.
func ExampleEachEvent() {
	run := messages.Ref{Tenant: "acme", Run: "greeting"}
	var head record.Head // of an empty log
	for _, records := range [][]record.Record{
		{&record.Started{Task: messages.Task{ID: run.Run, Tenant: run.Tenant, Input: messages.TextInput("Say hello.")}}},
		{&record.Claimed{Claim: "c-1", Worker: "w-1", Ticket: 1, Delivery: 1}},
		{&record.StepStarted{Step: 1}},
	} {
		head = record.Follow(head, records...)
		entry := record.Entry{Head: head, Records: records}
		for e := range record.EachEvent(run, &entry, func(string) bool { return true }) {
			fmt.Println(e.Sequence, e.Name())
		}
		fmt.Println(head.Kinds)
	}
	// Output:
	// 1 run_queued
	// 2 run_started
	// [started]
	// [claimed]
	// 3 step_start
	// [step_started]
}

// A worker must refuse a record that it does not know, and leave the run to a newer one.
func ExampleDecodeRecords() {
	data, err := record.EncodeRecords([]record.Record{&record.Steered{ID: "m-1", Message: "Use metric units."}})
	fmt.Println(string(data), err)
	_, err = record.DecodeRecords([]byte(`[{"kind": "teleported", "data": {}}]`))
	fmt.Println(err)
	// Output:
	// [{"kind":"steered","data":{"id":"m-1","message":"Use metric units."}}] <nil>
	// records[0].kind: "teleported" is unknown
}
