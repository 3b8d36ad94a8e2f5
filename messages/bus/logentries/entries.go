package logentries

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/logentry"
)

// Publish hands an entry of a run, as logentry.EncodeLogEntry made it, to the connection, and waits for nothing:
// it is stored at most once. An error says that it is not sent.
func (st *Store) Publish(run messages.Ref, entry []byte) error {
	if err := run.Check(); err != nil {
		return err
	}
	if err := st.bus.Conn().Publish(run.LogEntriesSubject(), entry); err != nil {
		return fmt.Errorf("publish log entry: %w", err)
	}
	return nil
}

// Query says which entries to read.
type Query struct {
	After  uint64          // only those after this one
	Follow bool            // those that come too, and not only what is stored now
	Ended  <-chan struct{} // with Follow: once it is closed, the read ends when nothing comes for a moment. nil: never
}

// Times of a read of log entries.
const (
	logQuiet = 500 * time.Millisecond // without an entry: who logs the end of a run is done by then
	// A consumer that announced entries and does not deliver them: they were removed before it came to them.
	logMissing = 5 * time.Second
	logLook    = 200 * time.Millisecond // for the next of those that are stored
)

// logsRoom is for a reader of one run: what it has not taken yet. Beyond it the reader begins anew where it was.
const logsRoom = 256

// Read yields what was logged about a run, oldest first, as it was stored, and, with Follow, what comes, until ctx
// ends; its error comes last. A lost connection is waited for and nothing is missed meanwhile, but for what the bounds of
// the stream remove. What is no entry of the run is passed over and counted.
func (st *Store) Read(ctx context.Context, run messages.Ref, r Query) iter.Seq2[logentry.StoredLogEntry, error] {
	return func(yield func(logentry.StoredLogEntry, error) bool) {
		if err := run.Check(); err != nil {
			yield(logentry.StoredLogEntry{}, err)
			return
		}
		t := &bus.Tail{Bus: st.bus, Stream: bus.StreamLogs, Filter: run.LogEntriesSubject(), Room: logsRoom, Last: r.After}
		t.Start.DeliverPolicy = jetstream.DeliverAllPolicy
		defer t.Close()
		heard := time.Now()
		for {
			if err := t.Begin(ctx); err != nil {
				yield(logentry.StoredLogEntry{}, fmt.Errorf("read log entries: %w", err))
				return
			}
			over := r.isOver()
			m, err := t.Next(ctx, time.Now().Add(r.wait(t)))
			switch {
			case errors.Is(err, bus.ErrNothing):
				all := t.IsOpen() && (!t.Owes() || time.Since(heard) > logMissing)
				if all && (over || !r.Follow) {
					return
				}
				continue
			case err != nil:
				yield(logentry.StoredLogEntry{}, fmt.Errorf("read log entries: %w", err))
				return
			}
			heard = time.Now()
			if e, ok := st.logEntry(run, m.Message); ok && !yield(e, nil) || m.Pending == 0 && !r.Follow {
				return
			}
		}
	}
}

// wait is how long to wait for an entry before one looks whether there can be any.
func (r *Query) wait(t *bus.Tail) time.Duration {
	switch {
	case r.Follow:
		return logQuiet
	case t.Owes():
		return logLook
	default:
		return 0
	}
}

func (r *Query) isOver() bool {
	select {
	case <-r.Ended:
		return true
	default:
		return false
	}
}

func (st *Store) logEntry(run messages.Ref, m bus.Message) (logentry.StoredLogEntry, bool) {
	e, err := logentry.DecodeLogEntry(run, m.Data)
	if err != nil || m.Subject != run.LogEntriesSubject() {
		st.bus.Foreign()
		return logentry.StoredLogEntry{}, false
	}
	return logentry.StoredLogEntry{Seq: m.Seq, LogEntry: e}, true
}

// AwaitEnd waits until the end of a run is among the events. An error is that of ctx, or says that events cannot be read.
func (st *Store) AwaitEnd(ctx context.Context, run messages.Ref) error {
	if err := run.Check(); err != nil {
		return err
	}
	t := &bus.Tail{Bus: st.bus, Stream: st.bus.Partitions(bus.StreamEvents).NameOf(run), Filter: run.EventSubject(messages.EventRunFinished), Room: logsRoom}
	t.Start.DeliverPolicy = jetstream.DeliverAllPolicy
	defer t.Close()
	for {
		m, err := t.Next(ctx, time.Time{})
		if err != nil {
			return fmt.Errorf("wait for the end of %s: %w", run, err)
		}
		if _, ok := st.bus.Event(m.Message); ok {
			return nil
		}
	}
}
