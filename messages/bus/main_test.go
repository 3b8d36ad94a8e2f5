package bus_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/deploy/embedded/embeddedtest"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ctxFor is the test's context with a deadline, so that a test that waits in vain says where.
func ctxFor(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func startNATS(t testing.TB) *embedded.Servers {
	t.Helper()
	return embeddedtest.Start(t, embedded.Config{NoRedis: true})
}

// open sets up the streams of a server and opens a bus in-process.
func open(t testing.TB, s *embedded.Servers, cfg bus.Config) (*bus.Bus, *nats.Conn) {
	t.Helper()
	return openOver(t, embeddedtest.Conn(t, s), cfg)
}

func openOver(t testing.TB, nc *nats.Conn, cfg bus.Config) (*bus.Bus, *nats.Conn) {
	t.Helper()
	if err := bus.Setup(ctxFor(t), nc, bus.Streams{}); err != nil {
		t.Fatal(err)
	}
	b, err := bus.Open(ctxFor(t), nc, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b, nc
}

func openNew(t testing.TB) (*bus.Bus, *nats.Conn) {
	t.Helper()
	return open(t, startNATS(t), bus.Config{})
}

func newTask(run messages.Ref) *messages.Task {
	t := &messages.Task{ID: run.Run, Tenant: run.Tenant, Input: messages.TextInput("Say hello.")}
	t.SetDefaults()
	return t
}

// step is a small entry.
func step(id string, n int) messages.Entry {
	e := messages.Entry{Records: []messages.Record{&messages.StepStarted{Step: n}}}
	e.Head = messages.Follow(messages.Ref{}, messages.Head{}, e.Records...)
	e.Head.ID, e.Head.Time = id, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return e
}
