package tools

import (
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// Bounds of what Described returns, in bytes: it fits a message of NATS.
const (
	maxDescription = 2 << 10   // of one
	maxDescribed   = 600 << 10 // descriptions and schemas of all together
)

// Described are the specs of the tools that are present, by name, for people who ask a worker. Descriptions are cut, and beyond a bound
// descriptions and schemas are left out. The schemas must not be modified.
func (s *Set) Described() []messages.ToolSpec {
	left := maxDescribed
	out := []messages.ToolSpec{}
	for _, name := range s.Names() {
		if len(out) == messages.MaxWorkerTools {
			break
		}
		spec := s.members[name].spec
		spec.Description = strict.Clip(spec.Description, maxDescription)
		if size := len(spec.Description) + len(spec.InputSchema); size <= left {
			left -= size
		} else {
			spec.Description, spec.InputSchema = "", nil
		}
		out = append(out, spec)
	}
	return out
}
