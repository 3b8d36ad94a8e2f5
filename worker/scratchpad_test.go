package worker_test

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools/scratchpad"
	"github.com/longshore-run/longshore/worker"
	"github.com/longshore-run/longshore/worker/model"
)

// noteTaker notes two things and reads them when it is asked first, and only reads when it is asked again.
type noteTaker struct{}

func (noteTaker) Stream(_ context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	reply := model.Reply{Message: messages.Message{Content: messages.TextContent("done")}, Stop: messages.StopEnd}
	call := func(id, name, args string) messages.Block {
		return messages.Block{ToolCall: &messages.ToolCall{ID: id, Name: name, Arguments: args}}
	}
	if last := r.Messages[len(r.Messages)-1]; last.Role == messages.RoleUser {
		reply.Message.Content, reply.Stop = []messages.Block{call("c3", "scratchpad_read", `{}`)}, messages.StopToolCalls
		if last.Text() == "first" {
			reply.Message.Content = []messages.Block{
				call("c1", "scratchpad_append", `{"text":"Berth 4 is free","stream":"found"}`),
				call("c2", "scratchpad_append", `{"text":"ask bob@example.com","stream":"todo"}`),
				reply.Message.Content[0],
			}
		}
	}
	return func(yield func(model.Delta, error) bool) { yield(model.Delta{Reply: &reply}, nil) }
}

// Notes are in the log: the next run of a session begins with them without a Redis, and calls of one reply see each other's.
func TestScratchpadGoesOnWithTheSession(t *testing.T) {
	keeper := messages.Definition{Name: "keeper", Session: &messages.SessionPolicy{Scratchpad: true}}
	forgetful := messages.Definition{Name: "forgetful"}
	for _, d := range []*messages.Definition{&keeper, &forgetful} {
		d.Tools = []string{"scratchpad_append", "scratchpad_read", "scratchpad_clear"}
		d.SetDefaults()
	}
	h := open(t, 30*time.Second, keeper, forgetful)
	notes, err := scratchpad.Tools()
	if err != nil {
		t.Fatal(err)
	}
	h.worker("w1", noteTaker{}, worker.Config{}, notes...)

	first := h.submit(messages.Task{Agent: "keeper", Session: "trip", Input: messages.TextInput("first")})
	r := h.result(first)
	if !r.Success || len(r.MemoryDeltas) != 2 || r.MemoryDeltas[0].Text != "Berth 4 is free" || r.MemoryDeltas[1].Name != "todo" {
		t.Fatalf("%+v", r)
	}
	if got := read(t, h, first); !strings.Contains(got, "found: Berth 4 is free") || !strings.Contains(got, "todo: ask [redacted]") {
		t.Errorf("calls of one reply: %q", got)
	}
	var written []messages.MemoryChange
	for _, e := range h.events(first) {
		if e.Name() == messages.EventMemoryWrite {
			var d messages.MemoryWritten
			if err := json.Unmarshal(e.Data, &d); err != nil {
				t.Fatal(err)
			}
			written = append(written, d.Changes...)
		}
	}
	if len(written) != 2 || written[0].Op != messages.MemoryAppend || written[1].Text != "ask [redacted]" {
		t.Errorf("events: %+v", written)
	}
	for _, tc := range [][2]string{{"forgetful", "There are no such notes."}, {"keeper", "found: Berth 4 is free"}} {
		next := h.submit(messages.Task{Agent: tc[0], Session: "trip", Input: messages.TextInput("next")})
		h.result(next)
		if got := read(t, h, next); !strings.Contains(got, tc[1]) {
			t.Errorf("%s: %q, want %q", tc[0], got, tc[1])
		}
	}
}

// read is what the call of scratchpad_read told the model.
func read(t *testing.T, h *house, run messages.Ref) string {
	t.Helper()
	for _, e := range h.events(run) {
		if e.Name() != messages.EventToolExecutionEnd {
			continue
		}
		var d messages.ToolExecution
		if err := json.Unmarshal(e.Data, &d); err != nil {
			t.Fatal(err)
		}
		if d.ToolName == "scratchpad_read" {
			return d.Result
		}
	}
	t.Fatalf("%s read no notes", run.Run)
	return ""
}
