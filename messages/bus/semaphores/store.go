// Package semaphores stores who holds the permits of each semaphore, and who waits for one.
package semaphores

import "github.com/longshore-run/longshore/messages/bus"

// Store has the semaphores of one fleet. Safe for concurrent use.
type Store struct{ bus *bus.Bus }

// New returns the semaphores that a bus holds.
func New(b *bus.Bus) *Store { return &Store{bus: b} }
