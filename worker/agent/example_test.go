package agent_test

import (
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
)

// A run is its log, folded; the planner looks at the state alone, so another worker continues where the log ends.
func ExampleState_Apply() {
	run := messages.Ref{Tenant: "acme", Run: "greeting"}
	def := messages.Definition{Name: "default"}
	def.SetDefaults()
	task := messages.Task{ID: run.Run, Tenant: run.Tenant, Input: messages.TextInput("Say hello.")}
	task.SetDefaults()

	var (
		state agent.State
		head  record.Head
	)
	for i, r := range []record.Record{
		&record.Started{Task: task, Agent: def},
		&record.Claimed{Claim: "c-1", Worker: "w-1", Ticket: 1, Delivery: 1},
		&record.StepStarted{Step: 1},
		&record.ModelReplied{
			Step: 1, Stop: messages.StopEnd,
			Message: messages.Message{Role: messages.RoleAssistant, Content: messages.TextContent("Hello, harbour.")},
		},
	} {
		head = record.Follow(head, r)
		if err := state.Apply(record.Entry{Seq: uint64(i + 1), Head: head, Records: []record.Record{r}}); err != nil {
			panic(err)
		}
		fmt.Printf("%s: %T\n", r.Kind(), state.Next(agent.ToolCalling{}, false))
	}
	fmt.Println(state.Answer)
	// Output:
	// started: *agent.CallModel
	// claimed: *agent.CallModel
	// step_started: *agent.CallModel
	// model_replied: *agent.Finish
	// Hello, harbour.
}
