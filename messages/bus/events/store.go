// Package events stores and reads what the world sees of runs: pages of events, watching, feeds, consumers that dispatchers
// share, live text. A Bus publishes the events of a run itself, with its log.
package events

import (
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

// Store has the events of one fleet. Safe for concurrent use. A process that announces often shares one: those of several
// race for the numbers.
type Store struct {
	bus        *bus.Bus
	announcing chan struct{} // has an element while an event about no run is stored
}

// of is the stream that has the events of a run.
func (st *Store) of(run messages.Ref) bus.Stream { return st.bus.Partitions(bus.StreamEvents).Of(run) }

// in are the streams that may have what matches a filter of subjects.
func (st *Store) in(filter string) []string {
	all := st.bus.Partitions(bus.StreamEvents)
	if t := strings.Split(filter, "."); len(t) > 3 && t[1] != "*" && t[2] != "*" {
		return []string{all.NameOf(messages.Ref{Tenant: t[1], Run: t[2]})}
	}
	return all.Names()
}

// New returns the events that a bus holds.
func New(b *bus.Bus) *Store { return &Store{bus: b, announcing: make(chan struct{}, 1)} }
