package fleet

import (
	"errors"
	"log/slog"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/logentries"
	"github.com/longshore-run/longshore/observability"
	"github.com/longshore-run/longshore/worker/policy"
)

// logs are the logger of a process, which publishes what it says about runs, and what publishes it.
type logs struct {
	*slog.Logger

	entries *observability.Entries
	store   *logentries.Store // of a bus that logs by this logger itself
}

// newLogs returns logs; their store must be set before entries run.
func newLogs(log *slog.Logger, redact *policy.Redactor, worker string) *logs {
	l := &logs{}
	l.entries = observability.NewEntries(observability.EntriesConfig{Publish: l.publish, Redact: redact, Worker: worker})
	l.Logger = l.entries.Logger(log)
	return l
}

// publish is called once the store is set: nothing runs before.
func (l *logs) publish(run messages.Ref, entry []byte) error {
	return l.store.Publish(run, entry)
}

// of is the logger of a part of the process.
func (l *logs) of(component string) *slog.Logger { return l.With("component", component) }

func (l *logs) metrics(m *observability.Metrics) error {
	return errors.Join(
		m.Counter("log_entries_published_total", "Log entries about runs that were sent to be stored.",
			func() float64 { return float64(l.entries.Stats().Published) }),
		m.Counter("log_entries_dropped_total", "Log entries about runs that were not stored: too many at once, or no connection.",
			func() float64 { return float64(l.entries.Stats().Dropped) }),
	)
}
