package record

import (
	"github.com/longshore-run/longshore/messages/queue"
)

// Spent is what the model calls in an entry cost, those for vectors included, in nano US dollars. Calls of unknown price and those that another run
// made count nothing.
func (e Entry) Spent() (nanos int64) {
	for _, r := range e.Records {
		switch r := r.(type) {
		case *ModelReplied:
			nanos += nano(r.Cost)
		case *Summarised:
			nanos += nano(r.Cost)
		case *ToolReturned:
			nanos += r.Embedded.nanos()
		case *MemoryRecalled:
			nanos += r.Embedded.nanos()
		case *MemoryWritten:
			nanos += r.Embedded.nanos()
		}
	}
	return nanos
}

// maxCallCost of a call, in dollars, is far beyond what one can cost: a larger number is a mistake.
const maxCallCost = 1e6

func nano(usd *float64) int64 {
	if usd == nil || !(*usd > 0) || *usd > maxCallCost {
		return 0
	}
	return int64(*usd/queue.Nano + 0.5)
}
