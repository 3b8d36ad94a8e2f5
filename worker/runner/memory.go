package runner

import (
	"slices"

	"github.com/longshore-run/longshore/messages/record"
)

// written is the record of what a call changed in memories; nil: nothing. A call that failed has changed nothing of the scratchpad.
func (x *toolWork) written(a *answer, r *record.ToolReturned) *record.MemoryWritten {
	changes := a.result.Memory
	if len(changes) == 0 || a.result.IsError {
		return nil
	}
	w := &record.MemoryWritten{Step: r.Step, StepID: r.StepID, Call: a.call.ID, Changes: slices.Clone(changes[:min(len(changes), record.MaxMemoryChanges)])}
	for i := range w.Changes {
		c := &w.Changes[i]
		c.Name, c.Text = x.cfg.Redact(c.Name), x.cfg.Redact(c.Text)
	}
	return w
}
