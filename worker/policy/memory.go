package policy

import (
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/sensitive"
)

// Memory is what a memory beside the log may hold of a text: all of it, all but keys and personal data, or nothing, when ok is false. A
// memory whose texts must be whole, as a cache of states, holds none that changes. Nil Rules take keys and personal data out.
func (r *Rules) Memory(text string) (kept string, ok bool) {
	switch r.memory() {
	case messages.MemoryDrop:
		return "", false
	case messages.MemoryKeep:
		return text, true
	default:
		return sensitive.Redact(text), true
	}
}

// memory is what the strictest layer says.
func (r *Rules) memory() string {
	said := map[string]bool{}
	if r != nil {
		for i := range r.layers {
			said[r.layers[i].memory] = true
		}
	}
	switch {
	case said[messages.MemoryDrop]:
		return messages.MemoryDrop
	case said[messages.MemoryKeep] && !said[messages.MemoryRedact]:
		return messages.MemoryKeep
	default:
		return messages.MemoryRedact
	}
}

// Retention is the longest that long-term memory may hold what the run writes to a collection; 0: as long as the writer asks.
func (r *Rules) Retention(collection string) time.Duration {
	if r == nil {
		return 0
	}
	var all []messages.RetainRule
	for i := range r.layers {
		all = slices.Concat(all, r.layers[i].retain)
	}
	return messages.Retention(all, collection)
}
