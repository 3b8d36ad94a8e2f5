package messages_test

import (
	"errors"
	"fmt"

	"github.com/longshore-run/longshore/messages"
)

// A task needs no more than its input. An error names the field that is wrong.
func ExampleDecodeTask() {
	for _, body := range []string{
		`{"input": "Say hello."}`,
		`{"input": "Say hello.", "priority": "urgent"}`,
		`{"input": "Say hello.", "limits": {"maxSteps": -1}}`,
	} {
		task, err := messages.DecodeTask([]byte(body))
		if wrong, ok := errors.AsType[*messages.FieldError](err); ok {
			fmt.Printf("%s: %s\n", wrong.Field, wrong.Reason)
			continue
		}
		fmt.Println(task.Tenant, task.Agent, task.Priority)
	}
	// Output:
	// default default normal
	// priority: must be high, normal or low
	// limits.maxSteps: must be 1 to 10000
}

// A second submit of an id succeeds, and makes no second run, if the fingerprints are equal; else it is a conflict.
func ExampleTask_Fingerprint() {
	fingerprint := func(body string) string {
		task, err := messages.DecodeTask([]byte(body))
		if err != nil {
			panic(err)
		}
		return task.Fingerprint()
	}
	first := fingerprint(`{"id": "greeting", "input": "Say hello."}`)
	fmt.Println(first == fingerprint(`{ "priority": "normal", "input": "Say hello.", "id": "greeting" }`))
	fmt.Println(first == fingerprint(`{"id": "greeting", "input": "Say goodbye."}`))
	// Output:
	// true
	// false
}

// A run is named by its tenant and its id, and every subject follows from the two.
func ExampleRef() {
	run := messages.Ref{Tenant: "acme", Run: "greeting"}
	fmt.Println(run)
	fmt.Println(run.TaskSubject(messages.PriorityHigh))
	fmt.Println(run.EventFilter())
	fmt.Println(messages.Ref{Tenant: "acme", Run: "*"}.Check())
	// Output:
	// acme/greeting
	// tasks.high.acme.greeting
	// events.acme.greeting.>
	// id: must be 1 to 64 characters of A-Z a-z 0-9 _ -
}

func ExampleDefinition_Validate() {
	agent := messages.Definition{Name: "writer", Tools: []string{"write_file"}}
	agent.SetDefaults()
	fmt.Println(agent.Planner, agent.MaxSteps, agent.Validate())

	agent.Cache = true // a reply may be used again only if nothing in it is left to chance
	fmt.Println(agent.Validate())
	// Output:
	// tools 25 <nil>
	// cache: needs temperature 0
}

// Steps that do not depend on each other may run together; one that needs the output of another names it.
func ExampleDecodePlan() {
	plan, err := messages.DecodePlan([]byte(`{"steps": [
		{"id": "read", "description": "Read the notes.", "tool": "read_file", "args": {"path": "notes.md"}},
		{"id": "write", "description": "Keep a copy.", "tool": "write_file", "dependsOn": ["read"],
		 "args": {"path": "copy.md", "content": "Copied: ${steps.read.output}"}}
	]}`))
	if err != nil {
		panic(err)
	}
	args, err := plan.Find("write").Resolve(func(string) (string, bool) { return "buy rope", true })
	fmt.Println(args, err)

	_, err = messages.DecodePlan([]byte(`{"steps": [
		{"id": "a", "description": "First.", "tool": "clock", "dependsOn": ["b"]},
		{"id": "b", "description": "Second.", "tool": "clock", "dependsOn": ["a"]}
	]}`))
	fmt.Println(err)
	// Output:
	// {"content":"Copied: buy rope","path":"copy.md"} <nil>
	// steps[0].dependsOn: the steps wait for each other: a -> b -> a
}

func ExampleMoney() {
	fmt.Println(messages.Money(12.3456), messages.Money(0.000042), messages.Money(0))
	// Output:
	// $12.35 $0.000042 $0.00
}
