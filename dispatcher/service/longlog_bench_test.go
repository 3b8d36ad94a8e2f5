package service_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/service"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/replay"
)

// BenchmarkLongLog asks for the log of a run of 3,000 steps with a call of a tool in each, and has it checked.
func BenchmarkLongLog(b *testing.B) {
	const steps = 3000
	nc := start(b)
	direct, err := bus.Open(b.Context(), nc, bus.Config{Direct: true}) // as that of a dispatcher
	if err != nil {
		b.Fatal(err)
	}
	logs := runlogs.New(direct, runlogs.Config{})
	defer serve(b, nc, service.Config{Bus: direct, Check: replay.Check})()
	run := dispatcher.Run("long")
	var (
		head record.Head
		last uint64
		n    int
	)
	add := func(rs ...record.Record) {
		head = record.Follow(head, rs...)
		head.ID, head.Time = fmt.Sprintf("e%d", n), time.Unix(int64(n), 0).UTC()
		n++
		if last, err = logs.Append(b.Context(), run, last, record.Entry{Head: head, Records: rs}); err != nil {
			b.Fatal(err)
		}
	}
	task := messages.Task{ID: run.Run, Tenant: run.Tenant, Input: messages.TextInput("Go.")}
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
	c, err := dispatcher.New(b.Context(), nc)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("log", func(b *testing.B) {
		for b.Loop() {
			got := 0
			for _, err := range c.Runs().Log(b.Context(), run) {
				if err != nil {
					b.Fatal(err)
				}
				got++
			}
			if got != n {
				b.Fatalf("%d entries, want %d", got, n)
			}
		}
	})
	b.Run("check", func(b *testing.B) {
		for b.Loop() {
			if r, err := c.Runs().Check(b.Context(), run); err != nil || r.Difference != nil || r.Decisions < 2*steps {
				b.Fatalf("%+v, %v", r, err)
			}
		}
	})
}
