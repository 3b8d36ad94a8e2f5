package memory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/circuit"
)

// MaxValue is the size limit of a snapshot's data in bytes. A larger one is not cached.
const MaxValue = 1 << 20

const (
	defaultPrefix          = "longshore"
	defaultTTL             = 24 * time.Hour
	defaultTimeout         = 250 * time.Millisecond // folding a usual log takes less; waiting longer would not pay
	defaultProbe           = time.Second
	defaultFlush           = time.Second
	defaultMaxPending      = 4096
	defaultMaxPendingBytes = 64 << 20
)

// Config of a ShortTerm. The zero value is good.
type Config struct {
	Prefix          string        // Of all keys, without braces. Default "longshore".
	TTL             time.Duration // After the last write to a key. Default 24 h.
	Timeout         time.Duration // Of one operation. Default 250 ms.
	Probe           time.Duration // How long a Redis that failed is left alone. Default 1 s.
	Flush           time.Duration // How long Run still writes once its context has ended. Default 1 s.
	MaxPending      int           // Runs with a change that waits to be written. Default 4096.
	MaxPendingBytes int           // Their data. Default 64 MiB.
	Sealer          Sealer        // Of the values. Default: they are in the clear.
	Log             *slog.Logger  // Told when Redis goes and comes back, and of dropped changes. Default: discards.
}

func (c Config) withDefaults() (Config, error) {
	if strings.ContainsAny(c.Prefix, "{}") {
		return c, &messages.FieldError{Field: "Prefix", Reason: "must not contain braces: they decide on the cluster slot"}
	}
	if c.TTL < 0 || c.Timeout < 0 || c.Probe < 0 || c.Flush < 0 || c.MaxPending < 0 || c.MaxPendingBytes < 0 {
		return c, errors.New("TTL, Timeout, Probe, Flush, MaxPending, MaxPendingBytes: must not be negative")
	}
	c.Prefix = orDefault(c.Prefix, defaultPrefix)
	c.TTL = orDefault(c.TTL, defaultTTL)
	c.Timeout = orDefault(c.Timeout, defaultTimeout)
	c.Probe = orDefault(c.Probe, defaultProbe)
	c.Flush = orDefault(c.Flush, defaultFlush)
	c.MaxPending = orDefault(c.MaxPending, defaultMaxPending)
	c.MaxPendingBytes = orDefault(c.MaxPendingBytes, defaultMaxPendingBytes)
	if c.TTL < time.Millisecond {
		return c, errors.New("TTL: must be at least 1 ms")
	}
	if c.Sealer == nil {
		c.Sealer = open{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

func orDefault[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}

// Snapshot is a run's state and the log entry that it reflects. The state may be used only if the log's entry at Seq
// has this EntryID: a sequence can come again after the log was purged or lost its end.
type Snapshot struct {
	Seq     uint64
	EntryID string
	Data    []byte
}

// ErrDown says that Redis failed lately and was not asked.
var ErrDown = errors.New("short-term memory is down")

// ShortTerm is the short-term memory of runs. Safe for concurrent use.
type ShortTerm struct {
	rdb     redis.UniversalClient
	config  Config
	pending *pending
	circuit *circuit.Circuit
	wake    chan struct{} // something for Run to look at: a change, or a Redis that went away
	isRun   atomic.Bool

	hits, misses, saves, dropped, errors atomic.Uint64
}

// New takes a client that obeys the deadline of a context, as Connect makes it; the caller closes it after Run.
func New(rdb redis.UniversalClient, config Config) (*ShortTerm, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("make short-term memory: %w", err)
	}
	return &ShortTerm{
		rdb:     rdb,
		config:  config,
		pending: newPending(config.MaxPending, config.MaxPendingBytes),
		circuit: circuit.New(circuit.Config{First: config.Probe}),
		wake:    make(chan struct{}, 1),
	}, nil
}

// Load returns the newest snapshot that Redis has. It is false when there is none, and as well when Redis is down or
// does not answer within the timeout: the caller folds the log in any case. A Save is seen once Run has written it.
func (s *ShortTerm) Load(ctx context.Context, run messages.Ref) (Snapshot, bool) {
	snapshot, err := s.load(ctx, run)
	if err != nil {
		s.misses.Add(1)
		return Snapshot{}, false
	}
	s.hits.Add(1)
	return snapshot, true
}

func (s *ShortTerm) load(ctx context.Context, run messages.Ref) (Snapshot, error) {
	if err := run.Check(); err != nil {
		return Snapshot{}, err
	}
	var snapshot Snapshot
	err := s.do(ctx, func(ctx context.Context) error {
		fields, err := s.rdb.HMGet(ctx, s.stateKey(run), fieldSeq, fieldEntry, fieldData).Result()
		if err != nil {
			return err
		}
		snapshot, err = readSnapshot(fields)
		return err
	})
	if err != nil {
		return Snapshot{}, err
	}
	snapshot.Data, err = s.config.Sealer.Open(ctx, run.Tenant, snapshot.Data, s.statePlace(run, snapshot.Seq, snapshot.EntryID))
	if err == nil && len(snapshot.Data) > MaxValue {
		err = errBadValue
	}
	if err != nil { // Redis itself is well
		s.errors.Add(1)
		return Snapshot{}, fmt.Errorf("read a state: %w", err)
	}
	return snapshot, nil
}

// errBadValue is a value in Redis that no ShortTerm wrote.
var errBadValue = errors.New("value is not a snapshot")

// readSnapshot returns redis.Nil when there is nothing.
func readSnapshot(fields []any) (Snapshot, error) {
	if len(fields) != 3 {
		return Snapshot{}, errBadValue
	}
	seq, hasSeq := fields[0].(string)
	entry, hasEntry := fields[1].(string)
	data, hasData := fields[2].(string)
	if !hasSeq && !hasEntry && !hasData {
		return Snapshot{}, redis.Nil
	}
	n, err := strconv.ParseUint(seq, 10, 64)
	if err != nil || !hasEntry || !hasData || len(data) > MaxValue+sealRoom {
		return Snapshot{}, errBadValue
	}
	return Snapshot{Seq: n, EntryID: entry, Data: []byte(data)}, nil
}

// Save has Run write the snapshot soon, unless Redis has one with the same or a greater sequence by then. It never
// blocks and promises nothing: a newer snapshot of the run replaces one that still waits, and one that is too large,
// or finds too much waiting, or fails to be written, is dropped and counted. The caller must not modify Data afterwards.
func (s *ShortTerm) Save(run messages.Ref, snapshot Snapshot) {
	if run.Check() != nil || len(snapshot.Data) > MaxValue || !s.pending.save(run, snapshot) {
		s.dropped.Add(1)
		return
	}
	s.signal()
}

// Delete has Run remove what is kept of the run. It never blocks and promises no more than Save; what
// it leaves behind expires. A snapshot that another worker saves later comes back.
func (s *ShortTerm) Delete(run messages.Ref) {
	if run.Check() != nil || !s.pending.delete(run) {
		s.dropped.Add(1)
		return
	}
	s.signal()
}

func (s *ShortTerm) signal() {
	select {
	case s.wake <- struct{}{}:
	default: // Run has not taken the last signal yet and will see this change with it
	}
}

// Stats count since New.
type Stats struct {
	Hits    uint64 // Loads that returned a snapshot.
	Misses  uint64 // All other Loads.
	Saves   uint64 // Snapshots written.
	Dropped uint64 // Changes given up: too large, too much waiting, not written in time.
	Errors  uint64 // Operations that Redis failed or refused.
	Up      bool   // Redis is asked. It is true before the first operation.
}

// Stats may be called at any time.
func (s *ShortTerm) Stats() Stats {
	return Stats{
		Hits:    s.hits.Load(),
		Misses:  s.misses.Load(),
		Saves:   s.saves.Load(),
		Dropped: s.dropped.Load(),
		Errors:  s.errors.Load(),
		Up:      s.circuit.IsClosed(),
	}
}
