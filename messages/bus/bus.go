package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages/control"
)

// Defaults of a Bus.
const (
	defaultBudget = 30 * time.Second // a cluster that lost its leader needs up to 8 s
	defaultAnswer = 3 * time.Second
)

// Pages asks a dispatcher for stored events. A *messages.Problem that is not retryable and a *messages.FieldError are
// final, all other errors are not.
type Pages func(ctx context.Context, r *control.EventsRequest) (*control.EventPage, error)

// Config of a Bus.
type Config struct {
	Signer  SigningKey    // of what people decide. Default none
	Keys    ControlKeys   // whose decisions count. Default: decisions need no signature
	Log     *slog.Logger  // default: discarded
	Budget  time.Duration // how long a request is tried without an answer. Default 30 s
	Answer  time.Duration // how long one attempt waits for its answer. Default 3 s
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
	signer  SigningKey
	keys    ControlKeys
	forged  forgedRevisions
	log     *slog.Logger
	budget  time.Duration
	answer  time.Duration
	pages   Pages
	direct  bool
	answers *answers
	broken  atomic.Pointer[error] // why nothing can be stored, as the last probe saw it
	skipped atomic.Uint64

	division Division // of the streams that had to exist
}

// Open checks that the streams exist, and creates nothing.
func Open(ctx context.Context, nc *nats.Conn, cfg Config) (*Bus, error) {
	b := &Bus{
		nc: nc, signer: cfg.Signer, keys: cfg.Keys, log: cfg.Log, pages: cfg.Pages, direct: cfg.Direct,
		budget: cmp.Or(cfg.Budget, defaultBudget), answer: cmp.Or(cfg.Answer, defaultAnswer), division: Division{},
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	names := cfg.Streams
	if names == nil {
		names = []string{StreamTasks, StreamRuns, StreamEvents, StreamBlobs, StreamDead, StreamAgents, StreamPrompts, StreamSessions, StreamFiles}
	}
	for _, name := range names {
		err := b.Call(ctx, "STREAM.INFO."+name, nil, nil)
		if Refused(err, CodeNoStream) && slices.Contains(divisible(), name) {
			n, found := b.findPartitions(ctx, name)
			if found != nil {
				return nil, found
			}
			if n > 0 {
				b.division[name] = n
				continue
			}
		}
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
	if b.answers, err = listen(nc); err != nil {
		return nil, fmt.Errorf("subscribe to acknowledgements: %w", err)
	}
	return b, nil
}

// Skipped is how many messages on subjects of events and of live text were passed over because they are none of that
// run.
func (b *Bus) Skipped() uint64 { return b.skipped.Load() }

// Conn is the connection of the Bus.
func (b *Bus) Conn() *nats.Conn { return b.nc }

// Signer signs what people decide, as [Config] says.
func (b *Bus) Signer() SigningKey { return b.signer }

// Keys are those whose decisions count, as [Config] says.
func (b *Bus) Keys() ControlKeys { return b.keys }

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
