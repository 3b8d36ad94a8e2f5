package runlogs

import (
	"slices"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/record"
)

// The records of an entry are written where those of earlier entries were: a long entry allocates a thing or two for each, and nothing else.
func TestRecordsShareABuffer(t *testing.T) {
	st := New(&bus.Bus{}, Config{})
	run := messages.Ref{Tenant: "acme", Run: "run-1"}
	allocs := func(steps int) float64 {
		e := record.Entry{Records: slices.Repeat([]record.Record{&record.StepEnded{Step: 1, Status: messages.StepCompleted}}, steps)}
		e.Head.ID = "01"
		return testing.AllocsPerRun(100, func() {
			buf := st.body()
			if _, err := st.encodeEntry(t.Context(), run, 0, &e, buf); err != nil {
				t.Error(err)
			}
			st.release(buf)
		})
	}
	const steps = 500
	short, long := allocs(1), allocs(steps)
	if long > short+2*steps { // the race detector has the pool lose some buffers; without them it is 16
		t.Errorf("%v allocations for a long entry, %v for a short one", long, short)
	}
}
