package workers

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// The tools of all workers are told once each, with how many offer them and whether they tell them alike; a worker of an earlier
// version tells names alone.
func TestOffered(t *testing.T) {
	t.Parallel()
	spec := func(name, text string) messages.ToolSpec {
		return messages.ToolSpec{Name: name, Description: text, InputSchema: json.RawMessage(`{"type":"object"}`), Effect: messages.EffectRead}
	}
	got := offered([]messages.WorkerStatus{
		{Name: "old", Tools: []string{"b", "c"}},
		{Name: "one", Tools: []string{"b", "a"}, Specs: []messages.ToolSpec{spec("a", "A"), spec("b", "B")}},
		{Name: "two", Tools: []string{"a", "b"}, Specs: []messages.ToolSpec{spec("a", "A"), spec("b", "other"), spec("unlisted", "x")}},
	})
	want := []control.OfferedTool{
		{ToolSpec: spec("a", "A"), Workers: 2},
		{ToolSpec: spec("b", "B"), Workers: 3, Differs: true},
		{ToolSpec: messages.ToolSpec{Name: "c"}, Workers: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
