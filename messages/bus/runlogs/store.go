package runlogs

import (
	"cmp"
	"sync"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/runlog"
)

// Sealer encrypts what logs hold. Safe for concurrent use.
type Sealer interface {
	// Seal encrypts plain and binds ad to it. It must not keep or change either.
	Seal(plain, ad []byte) ([]byte, error)
	// Open undoes Seal; it fails when anything, ad included, is not as it was.
	Open(sealed, ad []byte) ([]byte, error)
}

// Config of a Store.
type Config struct {
	Sealer  Sealer // of the logs. Default none: they are in the clear
	Inline  int    // bytes of an entry above which it is stored as a blob. Default messages.MaxPayload
	MaxBlob int    // the largest payload of a record, in bytes. Default 64 MiB, which is the most
}

// Store has the logs of all runs and publishes their events. Safe for concurrent use. It has nothing to close: it ends with
// the connection of its Bus.
type Store struct {
	bus     *bus.Bus
	cfg     Config
	ignored ignoredEntries
	flights flights
	pacer   pacer
	spent   spentCache
	bodies  sync.Pool // of *[]byte
}

var (
	_ runlog.Log    = (*Store)(nil)
	_ runlog.Events = (*Store)(nil)
)

// New returns the logs that a bus holds. It asks the server nothing. A process has one: its appends hold back its events, and
// it counts what it ignored and what it spent.
func New(b *bus.Bus, cfg Config) *Store {
	cfg.Inline = cmp.Or(cfg.Inline, messages.MaxPayload)
	cfg.MaxBlob = min(cmp.Or(cfg.MaxBlob, maxBlob), maxBlob)
	st := &Store{bus: b, cfg: cfg}
	st.flights.bus, st.pacer.flights = b, &st.flights
	return st
}
