// Package batches stores batches: their heads, lines and outcomes.
package batches

import "github.com/longshore-run/longshore/messages/bus"

// Store has the batches of one fleet. Safe for concurrent use.
type Store struct{ bus *bus.Bus }

// New returns the batches that a bus holds.
func New(b *bus.Bus) *Store { return &Store{bus: b} }
