// Package events stores and reads what the world sees of runs: pages of events, watching, feeds, consumers that dispatchers
// share, live text. A Bus publishes the events of a run itself, with its log.
package events

import "github.com/longshore-run/longshore/messages/bus"

// Store has the events of one fleet. Safe for concurrent use. A process that announces often shares one: those of several
// race for the numbers.
type Store struct {
	bus        *bus.Bus
	announcing chan struct{} // has an element while an event about no run is stored
}

// New returns the events that a bus holds.
func New(b *bus.Bus) *Store { return &Store{bus: b, announcing: make(chan struct{}, 1)} }
