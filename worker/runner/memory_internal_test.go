package runner

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/tools"
)

// What a call has written outside of the log is recorded also if its result is an error, as one that rules withheld; notes are not.
func TestMemoryOfAFailedCall(t *testing.T) {
	note := messages.MemoryChange{Memory: messages.MemoryScratchpad, Op: messages.MemoryAppend, Name: "notes", ID: "n"}
	fact := messages.MemoryChange{Memory: messages.MemoryLongTerm, Op: messages.MemoryWrite, Name: "facts", ID: "f"}
	j, _ := newJob(t, Ticket{})
	x := &toolWork{job: j}
	for _, tc := range []struct {
		failed bool
		given  []messages.MemoryChange
		want   []messages.MemoryChange
	}{
		{false, []messages.MemoryChange{note, fact}, []messages.MemoryChange{note, fact}},
		{true, []messages.MemoryChange{note, fact}, []messages.MemoryChange{fact}},
		{true, []messages.MemoryChange{note}, nil},
		{false, nil, nil},
	} {
		w := x.written(&answer{result: tools.Result{IsError: tc.failed, Memory: tc.given}}, &record.ToolReturned{})
		var got []messages.MemoryChange
		if w != nil {
			got = w.Changes
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("failed %v: %s", tc.failed, diff)
		}
	}
}
