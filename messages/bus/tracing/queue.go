// Package tracing hands the events that traces are made of to one exporter each.
package tracing

import "github.com/longshore-run/longshore/messages/bus"

// Queue has the events that traces are made of. Safe for concurrent use.
type Queue struct{ bus *bus.Bus }

// New returns the queue that a bus holds.
func New(b *bus.Bus) *Queue { return &Queue{bus: b} }
