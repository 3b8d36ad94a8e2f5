package record

import (
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// MemoryWritten says what a tool call changed in memories. It stands in the entry of the call's result. What it says of the scratchpad is
// the truth about it; a change of long-term memory was made before.
type MemoryWritten struct {
	Step    int                     `json:"step"`
	StepID  string                  `json:"stepId,omitempty"` // of the plan's step
	Call    string                  `json:"call"`
	Changes []messages.MemoryChange `json:"changes"` // at most MaxMemoryChanges
}

// MaxMemoryChanges bounds the changes of one call.
const MaxMemoryChanges = 64

const (
	shownChanges = 16  // of a call in its event
	shownText    = 512 // bytes of what was written
)

// Kind implements Record.
func (*MemoryWritten) Kind() Kind { return KindMemoryWritten }

func (r *MemoryWritten) data() any {
	d := &messages.MemoryWritten{StepID: stepIn(r.Step, r.StepID), CallID: named(r.Call)}
	for _, c := range r.Changes[:min(len(r.Changes), shownChanges)] {
		d.Changes = append(d.Changes, Brief(c))
	}
	d.More = len(r.Changes) - len(d.Changes)
	return d
}

// Brief is a change as events and results show it.
func Brief(c messages.MemoryChange) messages.MemoryChange {
	c.Name, c.ID, c.Text = named(c.Name), named(c.ID), strict.Brief(c.Text, shownText)
	return c
}

// shownBy is the record as events may show it.
func (r *MemoryWritten) shownBy(w *Shown) Record {
	c := *r
	c.Changes = w.changes(r.Changes)
	return &c
}

// changes are what calls changed in memories. Their texts are what the model gave a tool.
func (w *Shown) changes(in []messages.MemoryChange) []messages.MemoryChange {
	out := slices.Clone(in)
	for i := range out {
		c := &out[i]
		if c.Name, c.Text = w.text(c.Name), w.text(c.Text); w.NoInputs {
			c.Text = ""
		}
	}
	return out
}
