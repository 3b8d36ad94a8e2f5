package service_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/dispatcher/service"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/control"
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
	run, n := longRun(b, logs, steps)
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
	within := dispatcher.NewWithin(nc, direct, catalog.New(direct), service.New(withController(b, nc, service.Config{Bus: direct})))
	b.Run("pages", func(b *testing.B) { // as the HTTP API makes them
		for b.Loop() {
			got, after := 0, uint64(0)
			for more := true; more; {
				page, err := within.Runs().LogPage(b.Context(), run, after, 100)
				if err != nil {
					b.Fatal(err)
				}
				got, after, more = got+len(page.Entries), page.Entries[len(page.Entries)-1].Seq, page.More
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

// longRun stores a run with so many steps, each with a call of a tool, and says how many entries its log has.
func longRun(tb testing.TB, logs *runlogs.Store, steps int) (_ messages.Ref, n int) {
	tb.Helper()
	run := dispatcher.Run("long")
	var (
		head record.Head
		last uint64
	)
	add := func(rs ...record.Record) {
		head = record.Follow(head, rs...)
		head.ID, head.Time = fmt.Sprintf("e%d", n), time.Unix(int64(n), 0).UTC()
		n++
		var err error
		if last, err = logs.Append(tb.Context(), run, last, record.Entry{Head: head, Records: rs}); err != nil {
			tb.Fatal(err)
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
	return run, n
}

// A log comes whole in pages of any size, none of them empty, and the last one says that it is the last.
func TestLogInPages(t *testing.T) {
	nc := start(t)
	b, err := bus.Open(t.Context(), nc, bus.Config{Direct: true})
	if err != nil {
		t.Fatal(err)
	}
	logs := runlogs.New(b, runlogs.Config{})
	run, n := longRun(t, logs, 300)
	defer serve(t, nc, service.Config{Bus: b})()
	over, err := dispatcher.New(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	within := dispatcher.NewWithin(nc, b, catalog.New(b), service.New(withController(t, nc, service.Config{Bus: b})))
	for name, c := range map[string]*dispatcher.Client{"over NATS": over, "within the process": within} {
		for _, limit := range []int{70, n - 1, n, n + 1} {
			got, after, pages := 0, uint64(0), 0
			for more := true; more; pages++ {
				page, err := c.Runs().LogPage(t.Context(), run, after, limit)
				if err != nil {
					t.Fatal(err)
				}
				if len(page.Entries) == 0 || len(page.Entries) > limit {
					t.Fatalf("%s: a page of %d entries, limit %d", name, len(page.Entries), limit)
				}
				got, after, more = got+len(page.Entries), page.Entries[len(page.Entries)-1].Seq, page.More
			}
			if want := (n + limit - 1) / limit; got != n || pages != want {
				t.Errorf("%s: %d entries in %d pages of %d, want %d in %d", name, got, pages, limit, n, want)
			}
		}
		all := 0
		for _, err := range c.Runs().Log(t.Context(), run) {
			if err != nil {
				t.Fatal(err)
			}
			all++
		}
		if all != n {
			t.Errorf("%s: %d entries, want %d", name, all, n)
		}
	}
	if m, err := nc.Request(control.SubjectLog, []byte(`{"id":"long","limit":-1}`), 10*time.Second); err != nil || !strings.Contains(string(m.Data), `"field":"limit"`) {
		t.Errorf("a limit below zero: %s, %v", m.Data, err)
	}
}
