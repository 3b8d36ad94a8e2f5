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

	Learned bool   `json:"learned,omitempty"` // no call made it: the run has become an example, before its end. It does so once
	Error   string `json:"error,omitempty"`   // why it has not

	Embedded *Embedded `json:"embedded,omitempty"` // what the example took; that of a call is in its result
}

// MaxMemoryChanges bounds the changes of one call.
const MaxMemoryChanges = 64

const (
	shownChanges  = 16  // of a call in its event
	shownText     = 512 // bytes of what was written
	shownMemories = 16
)

// MemoryRecalled is what a run was given of long-term memory, before its first model call. Memory is not searched again for the run.
type MemoryRecalled struct {
	Memories []Memory `json:"memories,omitempty"` // the best first
	LeftOut  int      `json:"leftOut,omitempty"`  // that would be more than the policy's tokens, or that a rule withheld
	Degraded string   `json:"degraded,omitempty"` // what the search had to leave out, such as vectors
	Error    string   `json:"error,omitempty"`    // why there are none
	Fatal    bool     `json:"fatal,omitempty"`    // the error ends the run: the agent does not work without its memories
	Millis   int64    `json:"millis"`

	Embedded *Embedded `json:"embedded,omitempty"` // what the search took
}

// Memory is an item of long-term memory as a run was given it.
type Memory struct {
	messages.MemoryUsed

	Text string `json:"text"`
}

// Kind implements Record.
func (*MemoryWritten) Kind() Kind { return KindMemoryWritten }

// Kind implements Record.
func (*MemoryRecalled) Kind() Kind { return KindMemoryRecalled }

func (r *MemoryRecalled) data() any {
	d := &messages.MemoryRecalled{
		Memories: []messages.MemoryShown{}, LeftOut: r.LeftOut, Degraded: strict.Brief(r.Degraded, messages.MaxEventArgs),
		Error: strict.Brief(r.Error, messages.MaxEventArgs), Fatal: r.Fatal, Millis: r.Millis,
	}
	for i := range r.Memories[:min(len(r.Memories), shownMemories)] {
		m := messages.MemoryShown{MemoryUsed: r.Memories[i].MemoryUsed, Text: strict.Brief(r.Memories[i].Text, shownText)}
		m.ID, m.Collection, m.Run, m.Document = named(m.ID), named(m.Collection), named(m.Run), named(m.Document)
		d.Memories = append(d.Memories, m)
	}
	d.More = len(r.Memories) - len(d.Memories)
	return d
}

// shownBy is the record as events may show it. Its texts are results, as those of the tool recall.
func (r *MemoryRecalled) shownBy(w *Shown) Record {
	c := *r
	c.Error, c.Memories = w.text(r.Error), slices.Clone(r.Memories)
	for i := range c.Memories {
		m := &c.Memories[i]
		if m.Document, m.Text = w.text(m.Document), w.text(m.Text); w.NoOutputs {
			m.Text = ""
		}
	}
	return &c
}

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
	c.Changes, c.Error = w.changes(r.Changes), w.text(r.Error)
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
