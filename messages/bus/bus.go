package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/runlog"
)

// Defaults of a Bus.
const (
	defaultBudget = 30 * time.Second // a cluster that lost its leader needs up to 8 s
	defaultAnswer = 3 * time.Second
)

// Sealer encrypts what logs hold. Safe for concurrent use.
type Sealer interface {
	// Seal encrypts plain and binds ad to it. It must not keep or change either.
	Seal(plain, ad []byte) ([]byte, error)
	// Open undoes Seal; it fails when anything, ad included, is not as it was.
	Open(sealed, ad []byte) ([]byte, error)
}

// Pages asks a dispatcher for stored events. A *messages.Problem that is not retryable and a *messages.FieldError are
// final, all other errors are not.
type Pages func(ctx context.Context, r *control.EventsRequest) (*control.EventPage, error)

// Config of a Bus.
type Config struct {
	Sealer  Sealer        // of the logs. Default none: they are in the clear
	Signer  SigningKey    // of what people decide. Default none
	Keys    ControlKeys   // whose decisions count. Default: everybody's
	Log     *slog.Logger  // default: discarded
	Budget  time.Duration // how long a request is tried without an answer. Default 30 s
	Answer  time.Duration // how long one attempt waits for its answer. Default 3 s
	Inline  int           // bytes of a log entry above which it is stored as a blob. Default messages.MaxPayload
	MaxBlob int           // the largest payload of a record, in bytes. Default 64 MiB, which is the most
	Streams []string      // that must exist. Default: all; a backend that may see few names those
	// Direct: the connection's user may ask for stored messages as they are (DIRECT.GET), which is faster for many. That is
	// for dispatchers alone: the server sends them wherever who asks wants them, as if it had a right to.
	Direct bool
	// Pages, if set, is how events are read: the connection's user may read no stream. Name no Streams then.
	Pages Pages
}

// Bus is an open connection to Longshore's streams. Safe for concurrent use. It has nothing to close: it ends with
// the connection.
type Bus struct {
	nc      *nats.Conn
	sealer  Sealer
	signer  SigningKey
	keys    ControlKeys
	ignored ignoredEntries
	forged  forgedRevisions
	log     *slog.Logger
	inline  int // bytes of an entry that is no blob
	budget  time.Duration
	answer  time.Duration
	maxBlob int
	pages   Pages
	direct  bool
	acks    *acks
	broken  atomic.Pointer[error] // why nothing can be stored, as the last probe saw it
	lull    lull
	bodies  sync.Pool // of *[]byte
	skipped atomic.Uint64
	spent   spentCache
}

var (
	_ runlog.Log    = (*Bus)(nil)
	_ runlog.Events = (*Bus)(nil)
)

// Open checks that the streams exist, and creates nothing.
func Open(ctx context.Context, nc *nats.Conn, cfg Config) (*Bus, error) {
	b := &Bus{
		nc: nc, sealer: cfg.Sealer, signer: cfg.Signer, keys: cfg.Keys, log: cfg.Log, pages: cfg.Pages, direct: cfg.Direct,
		inline: cmp.Or(cfg.Inline, messages.MaxPayload), budget: cmp.Or(cfg.Budget, defaultBudget), answer: cmp.Or(cfg.Answer, defaultAnswer),
		maxBlob: min(cmp.Or(cfg.MaxBlob, maxBlob), maxBlob),
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	names := cfg.Streams
	if names == nil {
		names = []string{StreamTasks, StreamRuns, StreamEvents, StreamBlobs, StreamDead, StreamAgents, StreamPrompts, StreamSessions}
	}
	for _, name := range names {
		err := b.Call(ctx, "STREAM.INFO."+name, nil, nil)
		switch {
		case Refused(err, CodeNoStream):
			return nil, fmt.Errorf("stream %s does not exist: it is created by a dispatcher (is one running?)", name)
		case errors.Is(err, nats.ErrNoResponders):
			return nil, fmt.Errorf("look for stream %s: %w (is JetStream enabled?)", name, err)
		case err != nil:
			return nil, fmt.Errorf("look for stream %s: %w", name, err)
		}
	}
	var err error
	if b.acks, err = listen(nc); err != nil {
		return nil, fmt.Errorf("subscribe to acknowledgements: %w", err)
	}
	b.lull.acks = b.acks
	return b, nil
}

// Skipped is how many messages on subjects of events and of live text were passed over because they are none of that
// run.
func (b *Bus) Skipped() uint64 { return b.skipped.Load() }

// Conn is the connection of the Bus.
func (b *Bus) Conn() *nats.Conn { return b.nc }

// Log is where the Bus, and what is built on it, says what went wrong.
func (b *Bus) Log() *slog.Logger { return b.log }

// Budget is how long a request is tried, as [Config] says.
func (b *Bus) Budget() time.Duration { return b.budget }

// Answer is how long one attempt waits for its answer, as [Config] says.
func (b *Bus) Answer() time.Duration { return b.answer }

// Pages is how events are read, as [Config] says; nil: from their stream.
func (b *Bus) Pages() Pages { return b.pages }

// NewJetStream is the library's view of a connection. Only what is set up once goes through it.
func NewJetStream(nc *nats.Conn) (jetstream.JetStream, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("open JetStream: %w", err)
	}
	return js, nil
}
