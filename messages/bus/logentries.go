package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
)

// StreamLogs holds what processes log about runs.
const StreamLogs = "LOGS"

// Bounds of LOGS, beside messages.MaxLogEntries of each run. The oldest entries go first.
const (
	defaultLogsMaxAge = 7 * day
	// DefaultLogsMaxBytes is reserved on the server's disk. An operator may change it at any time.
	DefaultLogsMaxBytes = 256 << 20
)

// logs is the stream. What is stored there may be lost, so nobody waits for it, and the disk need not have it at once.
func logs(c jetstream.StreamConfig, s Streams) jetstream.StreamConfig {
	c.Name, c.Description = StreamLogs, "What processes log about runs."
	c.Subjects = []string{"logs.*.*"}
	c.MaxMsgsPerSubject = messages.MaxLogEntries
	c.MaxAge = cmp.Or(s.LogsMaxAge, defaultLogsMaxAge)
	c.MaxBytes = cmp.Or(s.LogsMaxBytes, DefaultLogsMaxBytes)
	c.MaxConsumers = maxWatchers
	return c
}

// PublishLogEntry hands an entry of a run, as messages.EncodeLogEntry made it, to the connection, and waits for nothing:
// it is stored at most once. An error says that it is not sent.
func (b *Bus) PublishLogEntry(run messages.Ref, entry []byte) error {
	if err := run.Check(); err != nil {
		return err
	}
	if err := b.nc.Publish(run.LogEntriesSubject(), entry); err != nil {
		return fmt.Errorf("publish log entry: %w", err)
	}
	return nil
}

// LogRead says which entries to read.
type LogRead struct {
	After  uint64          // only those after this one
	Follow bool            // those that come too, and not only what is stored now
	Ended  <-chan struct{} // with Follow: once it is closed, the read ends when nothing comes for a moment. nil: never
}

// Times of a read of log entries.
const (
	logQuiet = 500 * time.Millisecond // without an entry: who logs the end of a run is done by then
	// A consumer that was told of entries and does not bring them: they were removed before it came to them.
	logMissing = 5 * time.Second
	logLook    = 200 * time.Millisecond // for the next of those that are stored
)

// logsRoom is for a reader of one run: what it has not taken yet. Beyond it the reader begins anew where it was.
const logsRoom = 256

// LogEntries yields what was logged about a run, oldest first, as it was stored, and, with Follow, what comes, until ctx
// ends; its error comes last. A lost connection is waited for and nothing is missed meanwhile, but for what the bounds of
// the stream remove. What is no entry of the run is passed over and counted.
func (b *Bus) LogEntries(ctx context.Context, run messages.Ref, r LogRead) iter.Seq2[messages.StoredLogEntry, error] {
	return func(yield func(messages.StoredLogEntry, error) bool) {
		if err := run.Check(); err != nil {
			yield(messages.StoredLogEntry{}, err)
			return
		}
		t := &tail{bus: b, stream: StreamLogs, filter: run.LogEntriesSubject(), room: logsRoom, last: r.After}
		t.start.DeliverPolicy = jetstream.DeliverAllPolicy
		defer t.close()
		heard := time.Now()
		for {
			if t.in == nil {
				if err := t.open(ctx, time.Time{}); err != nil {
					yield(messages.StoredLogEntry{}, fmt.Errorf("read log entries: %w", err))
					return
				}
				continue
			}
			over := r.isOver()
			m, err := t.next(ctx, time.Now().Add(r.wait(t)))
			switch {
			case errors.Is(err, errNothing):
				all := t.in != nil && (t.consumed >= t.stored || time.Since(heard) > logMissing)
				if all && (over || !r.Follow) {
					return
				}
				continue
			case err != nil:
				yield(messages.StoredLogEntry{}, fmt.Errorf("read log entries: %w", err))
				return
			}
			heard = time.Now()
			if e, ok := b.logEntry(run, m.stored); ok && !yield(e, nil) || m.pending == 0 && !r.Follow {
				return
			}
		}
	}
}

// wait is how long to wait for an entry before one looks whether there can be any.
func (r *LogRead) wait(t *tail) time.Duration {
	switch {
	case r.Follow:
		return logQuiet
	case t.consumed < t.stored:
		return logLook
	default:
		return 0
	}
}

func (r *LogRead) isOver() bool {
	select {
	case <-r.Ended:
		return true
	default:
		return false
	}
}

func (b *Bus) logEntry(run messages.Ref, m stored) (messages.StoredLogEntry, bool) {
	e, err := messages.DecodeLogEntry(run, m.data)
	if err != nil || m.subject != run.LogEntriesSubject() {
		b.skipped.Add(1)
		return messages.StoredLogEntry{}, false
	}
	return messages.StoredLogEntry{Seq: m.seq, LogEntry: e}, true
}

// AwaitEnd waits until the end of a run is among the events. An error is that of ctx, or says that events cannot be read.
func (b *Bus) AwaitEnd(ctx context.Context, run messages.Ref) error {
	if err := run.Check(); err != nil {
		return err
	}
	t := &tail{bus: b, stream: StreamEvents, filter: run.EventSubject(messages.EventRunFinished), room: logsRoom}
	t.start.DeliverPolicy = jetstream.DeliverAllPolicy
	defer t.close()
	for {
		m, err := t.next(ctx, time.Time{})
		if err != nil {
			return fmt.Errorf("wait for the end of %s: %w", run, err)
		}
		if _, ok := b.event(m.stored); ok {
			return nil
		}
	}
}
