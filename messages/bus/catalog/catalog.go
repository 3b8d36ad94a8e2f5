// Package catalog stores agents, prompts and API keys, each with its revisions.
package catalog

import "github.com/longshore-run/longshore/messages/bus"

// Catalog has the agents, prompts and keys of one fleet. It remembers agents for a moment, so a process shares one. Safe for
// concurrent use.
type Catalog struct {
	bus    *bus.Bus
	agents agentCache
}

// New returns the catalog that a bus holds.
func New(b *bus.Bus) *Catalog { return &Catalog{bus: b} }
