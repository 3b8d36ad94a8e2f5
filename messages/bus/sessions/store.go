// Package sessions stores the order of the runs of each session.
package sessions

import "github.com/longshore-run/longshore/messages/bus"

// Store has the sessions of one fleet. Safe for concurrent use.
type Store struct{ bus *bus.Bus }

// New returns the sessions that a bus holds.
func New(b *bus.Bus) *Store { return &Store{bus: b} }
