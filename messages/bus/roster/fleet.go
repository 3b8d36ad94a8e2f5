// Package roster knows the workers of the fleet: which are alive, what each does, and how to ask one to drain.
package roster

import "github.com/longshore-run/longshore/messages/bus"

// Fleet asks workers, and speaks for one. Safe for concurrent use.
type Fleet struct{ bus *bus.Bus }

// New returns the fleet behind a bus.
func New(b *bus.Bus) *Fleet { return &Fleet{bus: b} }
