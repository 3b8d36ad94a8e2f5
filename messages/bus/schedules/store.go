// Package schedules stores the schedules of tenants, and has the stream of tasks say when one is due.
package schedules

import "github.com/longshore-run/longshore/messages/bus"

// Store has the schedules of one fleet. Safe for concurrent use.
type Store struct{ bus *bus.Bus }

// New returns the schedules that a bus holds.
func New(b *bus.Bus) *Store { return &Store{bus: b} }
