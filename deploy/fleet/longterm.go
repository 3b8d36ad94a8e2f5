package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/longshore-run/longshore/deploy/settings"
	memories "github.com/longshore-run/longshore/dispatcher/service/memory"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/keyring"
	"github.com/longshore-run/longshore/observability"
	"github.com/longshore-run/longshore/worker/memory"
	"github.com/longshore-run/longshore/worker/memory/embedding"
	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/memory/longterm/redisstore"
	"github.com/longshore-run/longshore/worker/memory/longterm/served"
	"github.com/longshore-run/longshore/worker/memory/longterm/sqlstore"
	"github.com/longshore-run/longshore/worker/model/httpstream"
)

const (
	sweepMemoryEvery = time.Minute
	sweptMemory      = 1000 // items of one sweep
)

// longTerm is the long-term memory of a worker or a dispatcher; nil when it has none.
type longTerm struct {
	store *longterm.Measured
	model string // that gives texts vectors; empty: none does
	meter longterm.Meter
	shut  []func() error
	log   *slog.Logger

	mu  sync.Mutex
	err error // why the last sweep failed
}

// openLongTerm opens what the settings name, for what the policy lets it hold. It does not connect: the store works as soon as its server does.
func openLongTerm(s settings.LongTerm, p *settings.Policy, redisURL string, ring *keyring.Keyring, log *slog.Logger) (*longTerm, error) {
	m := &longTerm{log: log}
	limits := longterm.Limits{Items: s.MemoryItems, Bytes: s.MemoryBytes}
	var store longterm.Store
	switch s.Memory {
	case "", settings.MemoryOff, settings.MemoryAuto:
		return nil, nil
	case settings.MemoryRedis:
		if redisURL == "none" || redisURL == "" {
			return nil, settings.Errorf("LONGSHORE_MEMORY: redis needs REDIS_URL")
		}
		rdb, err := memory.Connect(redisURL)
		if err != nil {
			return nil, fmt.Errorf("REDIS_URL: %w", err)
		}
		m.shut = append(m.shut, rdb.Close)
		store = redisstore.New(rdb, redisstore.Config{Limits: limits})
	default:
		db, err := sqlstore.Open(sqlstore.Config{Where: strings.TrimPrefix(s.Memory, settings.MemorySQLite), Limits: limits, Language: s.MemoryLanguage})
		if err != nil {
			return nil, fmt.Errorf("LONGSHORE_MEMORY: %w", err)
		}
		m.shut = append(m.shut, db.Close)
		store = db
	}
	if ring.On() { // otherwise texts are in the clear, and words are looked up
		store = longterm.Sealed(store, ring)
	}
	by, shut, err := Embedder(s)
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	m.shut = append(m.shut, func() error { shut(); return nil })
	if by != nil {
		store, m.model = longterm.Embedded(store, m.meter.Of(by)), by.Model()
	}
	m.store = longterm.Measure(longterm.Retained(store, memoryRetention(p)))
	return m, nil
}

// kept is the store; nil without one.
func (m *longTerm) kept() longterm.Store {
	if m == nil {
		return nil
	}
	return m.store
}

// served is what the dispatcher answers requests from; nil without a store.
func (m *longTerm) served() memories.Store {
	if m == nil {
		return nil
	}
	return served.New(m.store, m.model)
}

// Embedder is what gives texts vectors, nil without a model, and what to call when it is no longer used.
func Embedder(s settings.LongTerm) (by longterm.Embedder, shut func(), err error) {
	switch s.EmbeddingsModel {
	case "":
		return nil, func() {}, nil
	case settings.EmbeddingsScripted:
		return embedding.NewScripted(), func() {}, nil
	}
	o, err := embedding.NewOpenAI(embedding.Config{
		Endpoint: httpstream.Endpoint{BaseURL: s.EmbeddingsURL, APIKey: s.EmbeddingsKey, NoAuth: s.EmbeddingsKey == ""},
		Model:    s.EmbeddingsModel, Dimensions: s.EmbeddingsDimensions,
	})
	if field, ok := errors.AsType[*messages.FieldError](err); ok {
		names := map[string]string{"baseURL": "LONGSHORE_EMBEDDINGS_URL", "apiKey": "LONGSHORE_EMBEDDINGS_KEY", "model": "LONGSHORE_EMBEDDINGS_MODEL", "dimensions": "LONGSHORE_EMBEDDINGS_DIMENSIONS"}
		return nil, nil, settings.Errorf("%s: %s", names[field.Field], field.Reason)
	}
	if err != nil {
		return nil, nil, err
	}
	return o, o.Close, nil
}

func (m *longTerm) close() error {
	if m == nil {
		return nil
	}
	var errs []error
	for _, shut := range m.shut {
		errs = append(errs, shut())
	}
	return errors.Join(errs...)
}

// run removes what has expired, some at a time, until ctx ends. Whether that works says whether the store does.
func (m *longTerm) run(ctx context.Context) error {
	if m == nil {
		return nil
	}
	ticker := time.NewTicker(sweepMemoryEvery)
	defer ticker.Stop()
	for {
		n, err := m.store.Sweep(ctx, sweptMemory)
		for err == nil && n == sweptMemory {
			n, err = m.store.Sweep(ctx, sweptMemory)
		}
		if ctx.Err() != nil {
			return nil
		}
		if was := m.failed(err); err != nil && was == nil {
			m.log.WarnContext(ctx, "long-term memory does not answer", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// failed notes how the last sweep ended, and returns how the one before did.
func (m *longTerm) failed(err error) (was error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was, m.err = m.err, err
	return was
}

// check says that long-term memory is away. A worker continues without it: calls that need it fail and say so.
func (m *longTerm) check() error {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return errors.New("long-term memory does not answer; see the log, and LONGSHORE_MEMORY")
	}
	return nil
}

func (m *longTerm) metrics(to *observability.Metrics) error {
	if m == nil {
		return nil
	}
	count := func(f func(longterm.Counts) uint64) func() float64 {
		return func() float64 { return float64(f(m.store.Counts())) }
	}
	return errors.Join(
		to.CountersBy("longterm_calls_total", "Calls of long-term memory, by operation.", "operation", m.store.Calls),
		to.CountersBy("longterm_failures_total", "Calls of long-term memory that failed, by reason.", "reason", m.store.Failures),
		to.CountersBy("longterm_milliseconds_total", "How long calls of long-term memory took together, by operation.", "operation", func() map[string]uint64 {
			out := map[string]uint64{}
			for name, s := range m.store.Seconds() {
				out[name] = uint64(1000 * s)
			}
			return out
		}),
		to.CountersBy("longterm_searches_total", "Searches of long-term memory, by whether they found something.", "result", func() map[string]uint64 {
			c := m.store.Counts()
			return map[string]uint64{"hit": c.Hits, "miss": c.Misses}
		}),
		to.Counter("longterm_degraded_total", "Searches of long-term memory that had to leave something out, such as vectors.", count(func(c longterm.Counts) uint64 { return c.Degraded })),
		to.Counter("longterm_written_items_total", "Items that were written to long-term memory.", count(func(c longterm.Counts) uint64 { return c.Written })),
		to.Counter("longterm_written_bytes_total", "Bytes of the items that were written to long-term memory.", count(func(c longterm.Counts) uint64 { return c.Bytes })),
		to.Counter("longterm_deleted_items_total", "Items that were deleted from long-term memory.", count(func(c longterm.Counts) uint64 { return c.Deleted })),
		to.Counter("longterm_embedding_calls_total", "Requests for vectors of long-term memory that were answered.", func() float64 { return float64(m.meter.Total().Calls) }),
		to.Counter("longterm_embedding_tokens_total", "Tokens of the texts of those requests.", func() float64 { return float64(m.meter.Total().Tokens) }),
		to.Counter("longterm_evicted_items_total", "Items of long-term memory that had expired and were removed.", count(func(c longterm.Counts) uint64 { return c.Evicted })),
	)
}
