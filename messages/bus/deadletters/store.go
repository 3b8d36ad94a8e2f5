// Package deadletters stores the dead letters: tasks and webhooks that could not be worked.
package deadletters

import "github.com/longshore-run/longshore/messages/bus"

// Store has the dead letters of one fleet. Safe for concurrent use.
type Store struct{ bus *bus.Bus }

// New returns the dead letters that a bus holds.
func New(b *bus.Bus) *Store { return &Store{bus: b} }
