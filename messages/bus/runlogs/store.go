package runlogs

import (
	"cmp"
	"context"
	"sync"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/runlog"
)

// Sealer encrypts what logs hold, with a key of the tenant. Safe for concurrent use. An error that is a record.ErrNoKey says that
// this process lacks the key, and others may have it.
type Sealer interface {
	// On reports whether there are keys. Otherwise Seal returns plain as it is, and what is sealed does not open.
	On() bool
	// Seal encrypts plain and binds ad to it. It must not keep or change either. What it returns begins with bus.Sealed.
	Seal(ctx context.Context, tenant string, plain, ad []byte) ([]byte, error)
	// Open undoes Seal; it fails when anything, ad included, is not as it was. It returns what was never sealed as it is, or refuses it.
	Open(ctx context.Context, tenant string, value, ad []byte) ([]byte, error)
}

// Config of a Store.
type Config struct {
	Sealer  Sealer // of the logs. Default: they are in the clear, and none that is sealed is read
	Inline  int    // bytes of an entry above which it is stored as a blob. Default messages.MaxPayload
	MaxBlob int    // the largest payload of a record, in bytes. Default 64 MiB, which is the most
	Bundles bool   // publish events that come together as one message; see messages.NameBundle
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
