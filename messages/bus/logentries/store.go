// Package logentries stores and reads what processes log about runs.
package logentries

import "github.com/longshore-run/longshore/messages/bus"

// Store has the log entries of one fleet. Safe for concurrent use.
type Store struct{ bus *bus.Bus }

// New returns the log entries that a bus holds.
func New(b *bus.Bus) *Store { return &Store{bus: b} }
