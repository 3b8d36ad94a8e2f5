package observability

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/logentry"
	"github.com/longshore-run/longshore/worker/policy"
)

// DefaultEntryQueue is how many entries may wait to be published. Each has 40 KiB at most, and most a few hundred bytes.
const DefaultEntryQueue = 1024

// EntriesConfig says where entries go.
type EntriesConfig struct {
	// Publish stores an entry of a run, as logentry.EncodeLogEntry made it. It waits for no answer.
	Publish func(run messages.Ref, entry []byte) error
	Redact  *policy.Redactor // default: nothing is redacted
	Worker  string           // name of the worker; empty in other processes
	Queue   int              // entries that may wait. Default DefaultEntryQueue
}

// Entries takes what loggers say about runs and publishes it, so that people can read it together with the run. It
// never holds up who logs: while too many entries wait, further ones are dropped and counted. At most once: what was not
// published when the process is killed is lost. Safe for concurrent use.
type Entries struct {
	cfg   EntriesConfig
	queue chan entryOf

	published, dropped atomic.Uint64
}

type entryOf struct {
	run  messages.Ref
	data []byte
}

// NewEntries returns Entries; nothing is published before Run.
func NewEntries(cfg EntriesConfig) *Entries {
	if cfg.Redact == nil {
		cfg.Redact = &policy.Redactor{}
	}
	return &Entries{cfg: cfg, queue: make(chan entryOf, cmp.Or(cfg.Queue, DefaultEntryQueue))}
}

// EntryStats count entries about runs.
type EntryStats struct {
	Published uint64 // handed to the connection
	Dropped   uint64 // too many waited, or there was no connection
}

// Stats returns the counts so far.
func (e *Entries) Stats() EntryStats {
	return EntryStats{Published: e.published.Load(), Dropped: e.dropped.Load()}
}

// Run publishes until ctx ends, and then what still waits.
func (e *Entries) Run(ctx context.Context) error {
	for {
		select {
		case one := <-e.queue:
			e.publish(ctx, one)
			continue
		case <-ctx.Done():
		}
		for {
			select {
			case one := <-e.queue:
				e.publish(ctx, one)
			default:
				return nil
			}
		}
	}
}

// How often and how long an entry is tried that cannot be published. Meanwhile others queue: a short loss of the
// connection, which is when logs are wanted, costs none.
const (
	publishAgain = 200 * time.Millisecond
	publishTries = 50
)

func (e *Entries) publish(ctx context.Context, one entryOf) {
	timer := time.NewTimer(publishAgain)
	defer timer.Stop()
	for range publishTries {
		if e.cfg.Publish(one.run, one.data) == nil { // to log the error would make another entry
			e.published.Add(1)
			return
		}
		timer.Reset(publishAgain)
		select {
		case <-timer.C:
		case <-ctx.Done():
			e.dropped.Add(1)
			return
		}
	}
	e.dropped.Add(1)
}

// Logger is log, and what it says with tenant and task_id is published too. Its level counts.
func (e *Entries) Logger(log *slog.Logger) *slog.Logger {
	return slog.New(&storing{to: e, line: log.Handler()})
}

// storing hands records to the handler of the lines, and those about runs to Entries.
type storing struct {
	to   *Entries
	line slog.Handler
	kept scopes
}

// Enabled implements slog.Handler.
func (h *storing) Enabled(ctx context.Context, l slog.Level) bool { return h.line.Enabled(ctx, l) }

// WithAttrs implements slog.Handler.
func (h *storing) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &storing{h.to, h.line.WithAttrs(attrs), h.kept.with(attrs)}
}

// WithGroup implements slog.Handler.
func (h *storing) WithGroup(name string) slog.Handler {
	return &storing{h.to, h.line.WithGroup(name), h.kept.open(name)}
}

// Handle implements slog.Handler.
func (h *storing) Handle(ctx context.Context, r slog.Record) error {
	s := h.kept.sort(&r)
	if s.run.Key != "" && s.tenant.Key != "" {
		h.to.take(ctx, s, &r)
	}
	return h.line.Handle(ctx, r)
}

// take queues the entry of a record.
func (e *Entries) take(ctx context.Context, s *sorted, r *slog.Record) {
	one, err := e.entry(ctx, s, r)
	if err != nil {
		e.dropped.Add(1)
		return
	}
	select {
	case e.queue <- one:
	default:
		e.dropped.Add(1)
	}
}

// entry makes text of a record in the one way in which that is done, redacts it, and reads it again.
func (e *Entries) entry(ctx context.Context, s *sorted, r *slog.Record) (one entryOf, err error) {
	var line bytes.Buffer
	options := &slog.HandlerOptions{Level: r.Level, ReplaceAttr: redaction{e.cfg.Redact}.replace}
	err = slog.NewJSONHandler(&line, options).Handle(ctx, s.record(r))
	var entry logentry.LogEntry
	if err = errors.Join(err, json.Unmarshal(line.Bytes(), &entry)); err != nil {
		return one, err
	}
	entry.Worker = cmp.Or(entry.Worker, e.cfg.Worker)
	one.run = messages.Ref{Tenant: entry.Tenant, Run: entry.Run}
	one.data, err = logentry.EncodeLogEntry(entry)
	return one, err
}
