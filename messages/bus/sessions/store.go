// Package sessions stores the order of the runs of each session.
package sessions

import (
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/runlog"
)

// Store has the sessions of one fleet. Safe for concurrent use.
type Store struct {
	bus *bus.Bus
	log runlog.Log
}

// New returns the sessions that a bus holds. Their order is rebuilt from the logs of the runs.
func New(b *bus.Bus, log runlog.Log) *Store { return &Store{b, log} }
