package observability_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/logentry"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/observability"
	"github.com/longshore-run/longshore/worker/policy"
)

// A line of JSON is an entry, whatever is logged.
func TestLinesAreEntries(t *testing.T) {
	for name, tc := range map[string]struct {
		say  func(*slog.Logger)
		want logentry.LogEntry
	}{
		"nothing but a message": {
			func(l *slog.Logger) { l.Info("m") },
			logentry.LogEntry{Level: logentry.LogInfo, Component: "longshore", Message: "m"},
		},
		"attributes of the logger": {
			func(l *slog.Logger) {
				l.With("component", "worker", "task_id", "r", "a", 1).Error("m", "tenant", "acme", "b", 2)
			},
			logentry.LogEntry{
				Level: logentry.LogError, Component: "worker", Message: "m", Tenant: "acme", Run: "r",
				Data: map[string]any{"a": 1.0, "b": 2.0},
			},
		},
		"the last one counts": {
			func(l *slog.Logger) {
				l.With("component", "worker", "step", 1).Info("m", "component", "bus", "step", 2)
			},
			logentry.LogEntry{Level: logentry.LogInfo, Component: "bus", Message: "m", Step: 2},
		},
		"fields of another type are data": {
			func(l *slog.Logger) { l.Info("m", "step", "two", "attempt", -1, "component", 3, "task_id", "") },
			logentry.LogEntry{
				Level: logentry.LogInfo, Component: "longshore", Message: "m",
				Data: map[string]any{"step": "two", "attempt": -1.0, "component": 3.0, "task_id": ""},
			},
		},
		"groups": {
			func(l *slog.Logger) {
				l.With("component", "x").WithGroup("g").With("task_id", "inner").WithGroup("h").Info("m", "step", 1)
			},
			logentry.LogEntry{
				Level: logentry.LogInfo, Component: "x", Message: "m",
				Data: map[string]any{"g": map[string]any{"task_id": "inner", "h": map[string]any{"step": 1.0}}},
			},
		},
		"names of an entry": {
			func(l *slog.Logger) { l.Info("m", "message", "x", "level", "loud", "timestamp", 1, "data", 2) },
			logentry.LogEntry{
				Level: logentry.LogInfo, Component: "longshore", Message: "m",
				Data: map[string]any{"message": "x", "level": "loud", "timestamp": 1.0, "data": 2.0},
			},
		},
		"levels between": {
			func(l *slog.Logger) { l.Log(context.Background(), slog.LevelWarn+2, "m") },
			logentry.LogEntry{Level: logentry.LogWarn, Component: "longshore", Message: "m"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			log, out := newLogger(t, observability.LogConfig{})
			tc.say(log)
			var got logentry.LogEntry
			if err := strict.Decode(out.Bytes(), &got); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if got.Timestamp.IsZero() {
				t.Error("it has no time")
			}
			got.Timestamp = time.Time{}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// shelf keeps what is published.
type shelf struct {
	mu   sync.Mutex
	all  []logentry.LogEntry
	err  error
	hold chan struct{} // not nil: a publish waits for it
	in   chan struct{} // not nil: receives at each publish
}

func (s *shelf) publish(run messages.Ref, data []byte) error {
	if s.in != nil {
		s.in <- struct{}{}
	}
	if s.hold != nil {
		<-s.hold
	}
	e, err := logentry.DecodeLogEntry(run, data)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.all = append(s.all, e)
	}
	return errors.Join(err, s.err)
}

// drained runs Entries until all that is queued is published.
func drained(t *testing.T, e *observability.Entries) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestEntriesTakesWhatIsAboutRuns(t *testing.T) {
	for _, format := range []string{observability.FormatJSON, observability.FormatText} {
		lines, out := newLogger(t, observability.LogConfig{Format: format})
		var s shelf
		e := observability.NewEntries(observability.EntriesConfig{Publish: s.publish, Worker: "w-1"})
		log := e.Logger(lines).With("component", "runner")
		log.Info("of no run")
		log.Info("of no tenant", "task_id", "r")
		log.Debug("below the level", "tenant", "acme", "task_id", "r")
		log.With("tenant", "acme", "task_id", "r").Warn("tool failed", "step", 2, "attempt", 1, "tool", "x", "err", errors.New("no"))
		log.Warn("hostile", "tenant", "acme", "task_id", "*.>")
		drained(t, e)
		if len(s.all) != 1 {
			t.Fatalf("%s: %+v", format, s.all)
		}
		s.all[0].Timestamp = time.Time{}
		want := logentry.LogEntry{
			Level: logentry.LogWarn, Component: "runner", Message: "tool failed", Data: map[string]any{"tool": "x", "err": "no"},
			Tenant: "acme", Run: "r", Step: 2, Attempt: 1, Worker: "w-1",
		}
		if diff := cmp.Diff(want, s.all[0]); diff != "" {
			t.Errorf("%s: %s", format, diff)
		}
		if n := strings.Count(out.String(), "\n"); n != 4 {
			t.Errorf("%s: %d lines: %s", format, n, out)
		}
		if got := e.Stats(); got != (observability.EntryStats{Published: 1, Dropped: 1}) { // not a run
			t.Errorf("%s: %+v", format, got)
		}
	}
}

// Whatever way a secret comes, it is in no entry, whatever the lines show.
func TestEntriesRedacts(t *testing.T) {
	for _, hidden := range []string{secret, quoted} {
		for name, logging := range loggings(hidden) {
			var s shelf
			e := observability.NewEntries(observability.EntriesConfig{Publish: func(run messages.Ref, data []byte) error {
				checkClean(t, string(data), hidden)
				return s.publish(run, data)
			}, Redact: policy.NewRedactor(hidden)})
			lines := slog.New(slog.NewJSONHandler(&bytes.Buffer{}, nil))
			logging(e.Logger(lines).With("tenant", "acme", "task_id", "r"))
			drained(t, e)
			if len(s.all) != 1 {
				t.Errorf("%s: %d entries, %+v", name, len(s.all), e.Stats())
			}
		}
	}
}

// Callers never block: while nothing can be published, entries are dropped and counted.
func TestEntriesDropsWhenItIsFull(t *testing.T) {
	s := shelf{hold: make(chan struct{}), in: make(chan struct{}, 100)}
	e := observability.NewEntries(observability.EntriesConfig{Publish: s.publish, Queue: 4})
	var out bytes.Buffer
	lines := slog.New(slog.NewTextHandler(&out, nil))
	log := e.Logger(lines).With("tenant", "acme", "task_id", "r")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	log.Info("first")
	<-s.in // it is being published, and does not end
	for range 10 {
		log.Info("more")
	}
	if got := e.Stats(); got != (observability.EntryStats{Dropped: 6}) {
		t.Errorf("got %+v", got)
	}
	if n := strings.Count(out.String(), "\n"); n != 11 {
		t.Errorf("%d lines", n)
	}
	close(s.hold)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if len(s.all) != 5 || e.Stats().Published != 5 {
		t.Errorf("%d entries, %+v", len(s.all), e.Stats())
	}
}

func TestEntriesCountsWhatCannotBePublished(t *testing.T) {
	s := shelf{err: errors.New("no connection")}
	e := observability.NewEntries(observability.EntriesConfig{Publish: s.publish})
	e.Logger(slog.New(slog.DiscardHandler)).Info("not even a line", "tenant", "acme", "task_id", "r")
	e.Logger(slog.New(slog.NewTextHandler(&bytes.Buffer{}, nil))).Info("m", "tenant", "acme", "task_id", "r")
	drained(t, e)
	if got := e.Stats(); got != (observability.EntryStats{Dropped: 1}) {
		t.Errorf("got %+v", got)
	}
}
