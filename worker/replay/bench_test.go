package replay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/replay"
)

// BenchmarkCheck plans a run of many steps again, each with a call of a tool.
func BenchmarkCheck(b *testing.B) {
	for _, steps := range []int{300, 3000} {
		b.Run(fmt.Sprintf("steps=%d", steps), func(b *testing.B) {
			entries := longLog(b, steps)
			for b.Loop() {
				r, err := replay.Check(each(entries, nil))
				if err != nil || r.Difference != nil || r.Decisions < steps {
					b.Fatalf("%v, %+v, %+v", err, r, r.Difference)
				}
			}
		})
	}
}

// longLog is the log of a run with so many steps.
func longLog(tb testing.TB, steps int) []record.Entry {
	tb.Helper()
	var (
		log  []record.Entry
		head record.Head
	)
	add := func(rs ...record.Record) {
		head = record.Follow(head, rs...)
		head.Time = time.Unix(int64(len(log)), 0).UTC()
		log = append(log, record.Entry{Head: head, Records: rs}.At(uint64(len(log)+1)))
	}
	task := messages.Task{ID: "long", Tenant: messages.DefaultTenant, Input: messages.TextInput("Go.")}
	task.SetDefaults()
	def := messages.Definition{Name: "walker", MaxSteps: steps + 1, Tools: []string{"look"}}
	def.SetDefaults()
	add(
		&record.Started{Task: task, Agent: def, Tools: []messages.ToolSpec{{Name: "look", InputSchema: []byte(`{}`)}}, QueuedAt: time.Unix(0, 0)},
		&record.Claimed{Claim: "k", Worker: "w", Ticket: 1}, &record.StepStarted{Step: 1},
	)
	for step := 1; step <= steps; step++ {
		call := messages.ToolCall{ID: fmt.Sprintf("c%d", step), Name: "look", Arguments: fmt.Sprintf(`{"at":%d}`, step)}
		add(
			&record.ModelReplied{Step: step, Message: messages.Message{Role: messages.RoleAssistant, Content: []messages.Block{{ToolCall: &call}}}, Stop: messages.StopToolCalls},
			&record.ToolStarted{Step: step, Call: call},
		)
		add(
			&record.ToolReturned{Step: step, Name: "look", Result: messages.ToolResult{CallID: call.ID, Content: []messages.Block{{Text: "There is nothing to see here."}}}},
			&record.StepEnded{Step: step, Status: messages.StepCompleted}, &record.StepStarted{Step: step + 1},
		)
	}
	return log
}
