package bus_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ctxFor is the test's context with a deadline, so that a test that waits in vain says where.
func ctxFor(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	tb.Cleanup(cancel)
	return ctx
}

func startNATS(tb testing.TB) *embedded.Servers {
	tb.Helper()
	return embeddedtest.Start(tb, embedded.Config{NoRedis: true})
}

// connect connects in-process, and comes back fast after a restart.
func connect(tb testing.TB, s *embedded.Servers) *nats.Conn {
	tb.Helper()
	opts, err := bus.Options(bus.ConnConfig{})
	if err != nil {
		tb.Fatal(err)
	}
	return embeddedtest.Conn(tb, s, append(opts, nats.ReconnectWait(time.Millisecond))...)
}

// open sets up the streams of a server and opens a bus in-process.
func open(tb testing.TB, s *embedded.Servers, cfg bus.Config) (*bus.Bus, *nats.Conn) {
	tb.Helper()
	return openOver(tb, connect(tb, s), cfg)
}

func openOver(tb testing.TB, nc *nats.Conn, cfg bus.Config) (*bus.Bus, *nats.Conn) {
	tb.Helper()
	if err := bus.Setup(ctxFor(tb), nc, bus.Streams{}); err != nil {
		tb.Fatal(err)
	}
	b, err := bus.Open(ctxFor(tb), nc, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return b, nc
}

func openNew(tb testing.TB) (*bus.Bus, *nats.Conn) {
	tb.Helper()
	return open(tb, startNATS(tb), bus.Config{})
}

func newTask(run messages.Ref) *messages.Task {
	t := &messages.Task{ID: run.Run, Tenant: run.Tenant, Input: messages.TextInput("Say hello.")}
	t.SetDefaults()
	return t
}

// step is a small entry.
func step(id string, n int) record.Entry {
	e := record.Entry{Records: []record.Record{&record.StepStarted{Step: n}}}
	e.Head = record.Follow(messages.Ref{}, record.Head{}, e.Records...)
	e.Head.ID, e.Head.Time = id, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return e
}

// values are those of a sequence without its errors, which fail the test.
func values[V any](tb testing.TB, seq iter.Seq2[V, error]) iter.Seq[V] {
	tb.Helper()
	return func(yield func(V) bool) {
		for v, err := range seq {
			if err != nil {
				tb.Error(err)
				return
			}
			if !yield(v) {
				return
			}
		}
	}
}
