package runner

import (
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// written is the record of what a call changed in memories; nil: nothing. A call that failed has changed nothing of the scratchpad, which
// follows from the log; what it has changed elsewhere stays changed, also if rules withheld the result.
func (x *toolWork) written(a *answer, r *record.ToolReturned) *record.MemoryWritten {
	changes := slices.Clone(a.result.Memory)
	if a.result.IsError {
		changes = slices.DeleteFunc(changes, func(c messages.MemoryChange) bool { return c.Memory == messages.MemoryScratchpad })
	}
	if len(changes) == 0 {
		return nil
	}
	w := &record.MemoryWritten{Step: r.Step, StepID: r.StepID, Call: a.call.ID, Changes: changes[:min(len(changes), record.MaxMemoryChanges)]}
	for i := range w.Changes {
		c := &w.Changes[i]
		c.Name, c.Text = x.cfg.Redact(c.Name), x.cfg.Redact(c.Text)
	}
	return w
}
