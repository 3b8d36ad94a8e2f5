// Package webhooks keeps the webhooks that are to be delivered, and hands them out.
package webhooks

import "github.com/longshore-run/longshore/messages/bus"

// Queue has the webhooks of one fleet that are to be delivered. Safe for concurrent use.
type Queue struct{ bus *bus.Bus }

// New returns the webhooks that a bus holds.
func New(b *bus.Bus) *Queue { return &Queue{bus: b} }
