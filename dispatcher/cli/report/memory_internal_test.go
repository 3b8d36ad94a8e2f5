package report

import (
	"testing"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
)

// What a run begins with is one line: how much it is, and where the first of it came from.
func TestMemoryRecalledIsTold(t *testing.T) {
	t.Parallel()
	of := func(id, run, document string) messages.MemoryShown {
		return messages.MemoryShown{MemoryUsed: messages.MemoryUsed{ID: id, Collection: "facts", Run: run, Document: document, Part: 2}}
	}
	for name, tc := range map[string]struct {
		data messages.MemoryRecalled
		want render.Line
	}{
		"nothing": {messages.MemoryRecalled{}, render.Line{Mark: render.Info, Text: "long-term memory: nothing about the task"}},
		"failed":  {messages.MemoryRecalled{Error: "away"}, render.Line{Mark: render.Attention, Text: "long-term memory could not be searched: away"}},
		"some": {
			messages.MemoryRecalled{Memories: []messages.MemoryShown{of("a", "r-1", ""), of("b", "", "ferries.md"), of("c", "", ""), of("d", "", "")}, More: 2},
			render.Line{Mark: render.Info, Text: "long-term memory: 6 recalled; facts/a (run r-1); facts/b (ferries.md, part 2); facts/c"},
		},
	} {
		if got := memoryRecalled(tc.data); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
}
