package agent_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
)

// The result of a run of 2,400 steps of 8 calls of 8 KiB each is a few MiB, and says what it does not repeat.
func TestResultIsBounded(t *testing.T) {
	var records []record.Record
	text := strings.Repeat("x", 4<<10)
	for n := 1; n <= 2400; n++ {
		var ids []string
		for i := range 8 {
			ids = append(ids, strconv.Itoa(n)+"-"+strconv.Itoa(i))
		}
		r := replied(n, messages.StopToolCalls, "", ids...)
		for i := range r.Message.Content {
			if c := r.Message.Content[i].ToolCall; c != nil {
				c.Arguments = text
			}
		}
		records = append(records, step(n), r)
		for _, id := range ids {
			records = append(records, returned(n, id, text))
		}
	}
	s := state(t, messages.Definition{}, hi, records...)
	res := s.Conclude(messages.Ref{}, &agent.Finish{Status: messages.StatusCompleted, Result: "done"}, s.StartedAt)
	b, err := record.EncodeRecords([]record.Record{&record.Finished{Result: res}})
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > 4<<20 || res.Result != "done" || res.Steps != 2400 {
		t.Errorf("%d bytes, %d steps, result %v", len(b), res.Steps, res.Result)
	}
	if last := res.Actions[len(res.Actions)-1]; last.Step != 2400 || !strings.Contains(res.Cut, "the first 14200 tool calls") {
		t.Errorf("%q, and the last call is of step %d", res.Cut, last.Step)
	}
	if len(s.ModelCalls) != 2400 || len(res.ModelCalls) != 2400 {
		t.Errorf("%d and %d model calls", len(s.ModelCalls), len(res.ModelCalls))
	}
	short := state(t, messages.Definition{}, hi, records[:10]...).Conclude(messages.Ref{}, &agent.Finish{Status: messages.StatusCompleted}, s.StartedAt)
	if short.Cut != "" || short.Actions[0].Output != text {
		t.Errorf("a short run is cut: %q", short.Cut)
	}
}
