package bus_test

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

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

func logEntry(tb testing.TB, run messages.Ref, message string) []byte {
	tb.Helper()
	data, err := messages.EncodeLogEntry(messages.LogEntry{
		Timestamp: time.Now(), Level: messages.LogInfo, Component: "runner", Message: message, Tenant: run.Tenant, Run: run.Run,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// storeLogs stores messages on the subject of a run's entries, and waits until they are there.
func storeLogs(tb testing.TB, nc *nats.Conn, run messages.Ref, all ...[]byte) {
	tb.Helper()
	js := newJetStream(tb, nc)
	for _, data := range all {
		if _, err := js.PublishAsync(run.LogEntriesSubject(), data); err != nil {
			tb.Fatal(err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-ctxFor(tb).Done():
		tb.Fatal("log entries are not stored")
	}
}

func said(tb testing.TB, b *bus.Bus, run messages.Ref, r bus.LogRead) (out []string) {
	tb.Helper()
	for e := range values(tb, b.LogEntries(ctxFor(tb), run, r)) {
		out = append(out, fmt.Sprintf("%d %s", e.Seq, e.Message))
	}
	return out
}

func TestLogEntries(t *testing.T) {
	b, nc := openNew(t)
	other := messages.Ref{Tenant: "acme", Run: "other"}
	if got := said(t, b, run1(), bus.LogRead{}); got != nil {
		t.Errorf("of a run without entries: %v", got)
	}
	storeLogs(t, nc, run1(), logEntry(t, run1(), "a"))
	storeLogs(t, nc, other, logEntry(t, other, "of another run"))
	storeLogs(t, nc, run1(), logEntry(t, run1(), "b"), logEntry(t, run1(), "c"))
	for after, want := range map[uint64][]string{0: {"1 a", "3 b", "4 c"}, 1: {"3 b", "4 c"}, 2: {"3 b", "4 c"}, 4: nil} {
		if diff := cmp.Diff(want, said(t, b, run1(), bus.LogRead{After: after})); diff != "" {
			t.Errorf("after %d: %s", after, diff)
		}
	}
	for _, run := range []messages.Ref{{Tenant: "acme", Run: "*"}, {Tenant: ">", Run: "r"}, {}} {
		for _, err := range b.LogEntries(ctxFor(t), run, bus.LogRead{}) {
			if _, ok := errors.AsType[*messages.FieldError](err); !ok {
				t.Errorf("%v: got %v", run, err)
			}
		}
		if err := b.PublishLogEntry(run, []byte("{}")); err == nil {
			t.Errorf("%v: it is published", run)
		}
	}
}

// Anybody who may publish there may have written what is stored.
func TestLogEntriesPassesOverWhatIsNone(t *testing.T) {
	b, nc := openNew(t)
	other := messages.Ref{Tenant: "acme", Run: "other"}
	hostile := [][]byte{
		nil, []byte("junk"), []byte("null"), []byte(`{"level":"info"}`), logEntry(t, other, "of another run"),
		[]byte(strings.Replace(string(logEntry(t, run1(), "m")), `"info"`, `"loud"`, 1)),
		[]byte(strings.Replace(string(logEntry(t, run1(), "m")), `"m"`, `"`+strings.Repeat("x", 100<<10)+`"`, 1)),
		[]byte(`{"data":` + strings.Repeat("[", 50_000)),
	}
	storeLogs(t, nc, run1(), logEntry(t, run1(), "before"))
	storeLogs(t, nc, run1(), hostile...)
	if diff := cmp.Diff([]string{"1 before"}, said(t, b, run1(), bus.LogRead{})); diff != "" {
		t.Error(diff)
	}
	if got := b.Skipped(); got != uint64(len(hostile)) {
		t.Errorf("%d were counted, want %d", got, len(hostile))
	}
	storeLogs(t, nc, run1(), logEntry(t, run1(), "after"))
	if diff := cmp.Diff([]string{"1 before", fmt.Sprintf("%d after", len(hostile)+2)}, said(t, b, run1(), bus.LogRead{})); diff != "" {
		t.Error(diff)
	}
}

func TestLogEntriesAreBoundedForEachRun(t *testing.T) {
	b, nc := openNew(t)
	quiet := messages.Ref{Tenant: "acme", Run: "quiet"}
	storeLogs(t, nc, quiet, logEntry(t, quiet, "it stays"))
	var all [][]byte
	for i := range messages.MaxLogEntries + 20 {
		all = append(all, logEntry(t, run1(), strconv.Itoa(i)))
	}
	storeLogs(t, nc, run1(), all...)
	got := said(t, b, run1(), bus.LogRead{})
	if len(got) != messages.MaxLogEntries || got[0] != "22 20" {
		t.Errorf("%d entries, the first is %q", len(got), got[0])
	}
	if got := said(t, b, quiet, bus.LogRead{}); len(got) != 1 {
		t.Errorf("of the other run: %v", got)
	}
}

// Who follows misses nothing while the server is away.
func TestLogEntriesFollowOverARestart(t *testing.T) {
	t.Parallel()
	s := startNATS(t)
	b, nc := open(t, s, quickly())
	storeLogs(t, nc, run1(), logEntry(t, run1(), "stored"))
	ended, got := make(chan struct{}), make(chan string)
	done := make(chan error, 1)
	go func() {
		for e, err := range b.LogEntries(ctxFor(t), run1(), bus.LogRead{Follow: true, Ended: ended}) {
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
			if err := b.PublishLogEntry(run1(), logEntry(t, run1(), want)); err != nil {
				t.Fatal(err)
			}
		case "after a restart":
			s.StopNATS()
			for nc.IsConnected() {
				time.Sleep(time.Millisecond)
			}
			if err := b.PublishLogEntry(run1(), logEntry(t, run1(), "lost")); err == nil {
				t.Error("it is sent without a connection")
			}
			if err := s.StartNATS(); err != nil {
				t.Fatal(err)
			}
			for !nc.IsConnected() {
				time.Sleep(time.Millisecond)
			}
			storeLogs(t, nc, run1(), logEntry(t, run1(), want))
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
	b, _ := openNew(t)
	ctx, cancel := context.WithCancelCause(ctxFor(t))
	cancel(errEnough)
	for _, err := range b.LogEntries(ctx, run1(), bus.LogRead{Follow: true}) {
		if !errors.Is(err, errEnough) {
			t.Errorf("got %v", err)
		}
	}
}

func TestAwaitEnd(t *testing.T) {
	b, nc := openNew(t)
	done := make(chan error, 1)
	go func() { done <- b.AwaitEnd(ctxFor(t), run1()) }()
	if _, err := newJetStream(t, nc).Publish(ctxFor(t), run1().EventSubject(messages.EventRunFinished), []byte("junk")); err != nil {
		t.Fatal(err)
	}
	publishRaw(t, nc, run1(), event(run1(), 1, messages.EventStepStart), event(run1(), 2, messages.EventRunFinished))
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := b.AwaitEnd(ctxFor(t), run1()); err != nil { // it is stored
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(ctxFor(t))
	cancel(errEnough)
	if err := b.AwaitEnd(ctx, messages.Ref{Tenant: "acme", Run: "goes-on"}); !errors.Is(err, errEnough) {
		t.Errorf("got %v", err)
	}
}

func TestPurgeRemovesLogEntries(t *testing.T) {
	b, nc := openNew(t)
	other := messages.Ref{Tenant: "acme", Run: "other"}
	storeLogs(t, nc, run1(), logEntry(t, run1(), "a"))
	storeLogs(t, nc, other, logEntry(t, other, "b"))
	if err := b.Purge(ctxFor(t), run1()); err != nil {
		t.Fatal(err)
	}
	if got := said(t, b, run1(), bus.LogRead{}); got != nil {
		t.Errorf("of the purged run: %v", got)
	}
	if got := said(t, b, other, bus.LogRead{}); len(got) != 1 {
		t.Errorf("of the other run: %v", got)
	}
}
