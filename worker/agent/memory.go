package agent

import (
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/scratchpad"
)

// remember folds what a call changed in memories. How many notes made room for others follows from the notes.
func (s *State) remember(r *record.MemoryWritten) {
	for _, c := range r.Changes {
		if c.Memory == messages.MemoryScratchpad {
			switch c.Op {
			case messages.MemoryAppend:
				s.Scratchpad.Append(scratchpad.Note{ID: c.ID, Stream: c.Name, Text: c.Text})
			case messages.MemoryClear:
				s.Scratchpad.Clear(c.Name)
			}
		}
		if len(s.MemoryDeltas) < messages.MaxMemoryDeltas {
			s.MemoryDeltas = append(s.MemoryDeltas, record.Brief(c))
		}
	}
}
