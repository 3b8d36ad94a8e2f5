// Package schedules stores the schedules of tenants, and has the stream of tasks say when one is due.
package schedules

import "github.com/longshore-run/longshore/messages/bus"

// Store has the schedules of one fleet. Safe for concurrent use.
type Store struct{ bus *bus.Bus }

// partition is the one of the queue that has what schedules do next, if that is divided. They belong to no run, and are few: so one
// consumer has all that are due.
const partition = 0

func (sc *Store) tasks() bus.Partitions { return sc.bus.Partitions(bus.StreamTasks) }

// New returns the schedules that a bus holds.
func New(b *bus.Bus) *Store { return &Store{bus: b} }
