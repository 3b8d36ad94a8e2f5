package logentries_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/logentries"
	"github.com/longshore-run/longshore/messages/bus/retention"
	"github.com/longshore-run/longshore/messages/logentry"
)

func logEntry(tb testing.TB, run messages.Ref, message string) []byte {
	tb.Helper()
	data, err := logentry.EncodeLogEntry(logentry.LogEntry{
		Timestamp: time.Now(), Level: logentry.LogInfo, Component: "runner", Message: message, Tenant: run.Tenant, Run: run.Run,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// storeLogs stores messages on the subject of a run's entries, and waits until they are there.
func storeLogs(tb testing.TB, nc *nats.Conn, run messages.Ref, all ...[]byte) {
	tb.Helper()
	js := bustest.NewJetStream(tb, nc)
	for _, data := range all {
		if _, err := js.PublishAsync(run.LogEntriesSubject(), data, jetstream.WithStallWait(time.Minute)); err != nil {
			tb.Fatal(err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-bustest.Context(tb).Done():
		tb.Fatal("log entries are not stored")
	}
}

func said(tb testing.TB, b *bus.Bus, run messages.Ref, r logentries.Query) (out []string) {
	tb.Helper()
	for e := range bustest.Values(tb, logentries.New(b).Read(bustest.Context(tb), run, r)) {
		out = append(out, fmt.Sprintf("%d %s", e.Seq, e.Message))
	}
	return out
}

func TestLogEntries(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	other := messages.Ref{Tenant: "acme", Run: "other"}
	if got := said(t, b, bustest.Run(), logentries.Query{}); got != nil {
		t.Errorf("of a run without entries: %v", got)
	}
	storeLogs(t, nc, bustest.Run(), logEntry(t, bustest.Run(), "a"))
	storeLogs(t, nc, other, logEntry(t, other, "of another run"))
	storeLogs(t, nc, bustest.Run(), logEntry(t, bustest.Run(), "b"), logEntry(t, bustest.Run(), "c"))
	for after, want := range map[uint64][]string{0: {"1 a", "3 b", "4 c"}, 1: {"3 b", "4 c"}, 2: {"3 b", "4 c"}, 4: nil} {
		if diff := cmp.Diff(want, said(t, b, bustest.Run(), logentries.Query{After: after})); diff != "" {
			t.Errorf("after %d: %s", after, diff)
		}
	}
	for _, run := range []messages.Ref{{Tenant: "acme", Run: "*"}, {Tenant: ">", Run: "r"}, {}} {
		for _, err := range logentries.New(b).Read(bustest.Context(t), run, logentries.Query{}) {
			if _, ok := errors.AsType[*messages.FieldError](err); !ok {
				t.Errorf("%v: got %v", run, err)
			}
		}
		if err := logentries.New(b).Publish(run, []byte("{}")); err == nil {
			t.Errorf("%v: it is published", run)
		}
	}
}

// Any client that may publish there may have written what is stored.
func TestLogEntriesPassesOverWhatIsNone(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	other := messages.Ref{Tenant: "acme", Run: "other"}
	hostile := [][]byte{
		nil, []byte("junk"), []byte("null"), []byte(`{"level":"info"}`), logEntry(t, other, "of another run"),
		[]byte(strings.Replace(string(logEntry(t, bustest.Run(), "m")), `"info"`, `"loud"`, 1)),
		[]byte(strings.Replace(string(logEntry(t, bustest.Run(), "m")), `"m"`, `"`+strings.Repeat("x", 100<<10)+`"`, 1)),
		[]byte(`{"data":` + strings.Repeat("[", 50_000)),
	}
	storeLogs(t, nc, bustest.Run(), logEntry(t, bustest.Run(), "before"))
	storeLogs(t, nc, bustest.Run(), hostile...)
	if diff := cmp.Diff([]string{"1 before"}, said(t, b, bustest.Run(), logentries.Query{})); diff != "" {
		t.Error(diff)
	}
	if got := b.Skipped(); got != uint64(len(hostile)) {
		t.Errorf("%d were counted, want %d", got, len(hostile))
	}
	storeLogs(t, nc, bustest.Run(), logEntry(t, bustest.Run(), "after"))
	if diff := cmp.Diff([]string{"1 before", fmt.Sprintf("%d after", len(hostile)+2)}, said(t, b, bustest.Run(), logentries.Query{})); diff != "" {
		t.Error(diff)
	}
}

func TestLogEntriesAreBoundedForEachRun(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	quiet := messages.Ref{Tenant: "acme", Run: "quiet"}
	storeLogs(t, nc, quiet, logEntry(t, quiet, "it stays"))
	var all [][]byte
	for i := range logentry.MaxLogEntries + 20 {
		all = append(all, logEntry(t, bustest.Run(), strconv.Itoa(i)))
	}
	storeLogs(t, nc, bustest.Run(), all...)
	got := said(t, b, bustest.Run(), logentries.Query{})
	if len(got) != logentry.MaxLogEntries || got[0] != "22 20" {
		t.Errorf("%d entries, the first is %q", len(got), got[0])
	}
	if got := said(t, b, quiet, logentries.Query{}); len(got) != 1 {
		t.Errorf("of the other run: %v", got)
	}
}

// Who follows misses nothing while the server is away.
func TestLogEntriesFollowOverARestart(t *testing.T) {
	t.Parallel()
	s := bustest.Start(t)
	b, nc := bustest.Open(t, s, bustest.Quickly())
	storeLogs(t, nc, bustest.Run(), logEntry(t, bustest.Run(), "stored"))
	ended, got := make(chan struct{}), make(chan string)
	done := make(chan error, 1)
	go func() {
		for e, err := range logentries.New(b).Read(bustest.Context(t), bustest.Run(), logentries.Query{Follow: true, Ended: ended}) {
			if err != nil {
				done <- err
				return
			}
			got <- e.Message
		}
		done <- nil
	}()
	for _, want := range []string{"stored", "live", "after a restart"} {
		switch want {
		case "live":
			if err := logentries.New(b).Publish(bustest.Run(), logEntry(t, bustest.Run(), want)); err != nil {
				t.Fatal(err)
			}
		case "after a restart":
			s.StopNATS()
			for nc.IsConnected() {
				time.Sleep(time.Millisecond)
			}
			if err := logentries.New(b).Publish(bustest.Run(), logEntry(t, bustest.Run(), "lost")); err == nil {
				t.Error("it is sent without a connection")
			}
			if err := s.StartNATS(); err != nil {
				t.Fatal(err)
			}
			for !nc.IsConnected() {
				time.Sleep(time.Millisecond)
			}
			storeLogs(t, nc, bustest.Run(), logEntry(t, bustest.Run(), want))
		}
		select {
		case m := <-got:
			if m != want {
				t.Errorf("got %q, want %q", m, want)
			}
		case err := <-done:
			t.Fatalf("it ended before %q: %v", want, err)
		}
	}
	close(ended)
	if err := <-done; err != nil {
		t.Errorf("after the end of the run: %v", err)
	}
}

func TestLogEntriesFollowEndsWithItsContext(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	ctx, cancel := context.WithCancelCause(bustest.Context(t))
	cancel(errStopped)
	for _, err := range logentries.New(b).Read(ctx, bustest.Run(), logentries.Query{Follow: true}) {
		if !errors.Is(err, errStopped) {
			t.Errorf("got %v", err)
		}
	}
}

func TestAwaitEnd(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	done := make(chan error, 1)
	go func() { done <- logentries.New(b).AwaitEnd(bustest.Context(t), bustest.Run()) }()
	if _, err := bustest.NewJetStream(t, nc).Publish(bustest.Context(t), bustest.EventsAt(t, nc, bustest.Run().EventSubject(messages.EventRunFinished)), []byte("junk")); err != nil {
		t.Fatal(err)
	}
	bustest.PublishRaw(t, nc, bustest.Run(), bustest.Event(bustest.Run(), 1, messages.EventStepStart), bustest.Event(bustest.Run(), 2, messages.EventRunFinished))
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := logentries.New(b).AwaitEnd(bustest.Context(t), bustest.Run()); err != nil { // it is stored
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(bustest.Context(t))
	cancel(errStopped)
	if err := logentries.New(b).AwaitEnd(ctx, messages.Ref{Tenant: "acme", Run: "goes-on"}); !errors.Is(err, errStopped) {
		t.Errorf("got %v", err)
	}
}

func TestPurgeRemovesLogEntries(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	other := messages.Ref{Tenant: "acme", Run: "other"}
	storeLogs(t, nc, bustest.Run(), logEntry(t, bustest.Run(), "a"))
	storeLogs(t, nc, other, logEntry(t, other, "b"))
	if err := retention.New(b, bustest.Logs(b)).Purge(bustest.Context(t), bustest.Run()); err != nil {
		t.Fatal(err)
	}
	if got := said(t, b, bustest.Run(), logentries.Query{}); got != nil {
		t.Errorf("of the purged run: %v", got)
	}
	if got := said(t, b, other, logentries.Query{}); len(got) != 1 {
		t.Errorf("of the other run: %v", got)
	}
}

var errStopped = errors.New("stopped")
