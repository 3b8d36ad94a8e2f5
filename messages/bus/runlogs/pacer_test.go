package runlogs_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/runlog"
)

// While many appends are on their way events wait, in order, and count as not published. What waits is sent when its
// owner flushes, when the appends are through, and after a while in any case.
func TestEventsWaitForAppends(t *testing.T) {
	many := int64(runlogs.FewAppends + 1)
	for name, release := range map[string]func(*runlogs.Store, func() error) error{
		"flush":       func(_ *runlogs.Store, flush func() error) error { return flush() },
		"few appends": func(logs *runlogs.Store, _ func() error) error { logs.Appending(-many); return nil },
		"a while":     func(*runlogs.Store, func() error) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := bustest.OpenNew(t)
			logs := bustest.Logs(b)
			out := logs.Open(bustest.Run())
			out.Publish(bustest.Context(t), 1, slices.Values(bustest.Events(bustest.Run(), 1, 1)))
			if err := out.Flush(bustest.Context(t)); err != nil {
				t.Fatal(err)
			}
			logs.Appending(many)
			out.Publish(bustest.Context(t), 2, slices.Values(bustest.Events(bustest.Run(), 2, 3)))
			out.Publish(bustest.Context(t), 3, slices.Values([]messages.Event(nil)))
			out.Publish(bustest.Context(t), 4, slices.Values(bustest.Events(bustest.Run(), 4, 4)))
			if err := release(logs, func() error { return out.Flush(bustest.Context(t)) }); err != nil {
				t.Fatal(err)
			}
			awaitThrough(t, out, 4)
			if diff := cmp.Diff(bustest.Numbers(1, 4), bustest.StoredNumbers(t, b, bustest.Run().EventFilter())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What is held back is bounded.
func TestFewEventsWait(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	logs := bustest.Logs(b)
	logs.Appending(runlogs.FewAppends + 1)
	out := logs.Open(bustest.Run())
	const entries = 500
	for i := range entries {
		out.Publish(bustest.Context(t), uint64(i+1), slices.Values(bustest.Events(bustest.Run(), i+1, i+1)))
	}
	if err := out.Flush(bustest.Context(t)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(bustest.Numbers(1, entries), bustest.StoredNumbers(t, b, bustest.Run().EventFilter())); diff != "" {
		t.Error(diff)
	}
}

// An event that cannot be sent is found when it is made, maybe much later, and stops its outbox.
func TestBadEventAmongThoseThatWait(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	logs := bustest.Logs(b)
	logs.Appending(runlogs.FewAppends + 1)
	out := logs.Open(bustest.Run())
	bad := bustest.Event(bustest.Run(), 2, "step_start")
	bad.Type = "step start"
	out.Publish(bustest.Context(t), 5, slices.Values(bustest.Events(bustest.Run(), 1, 1)))
	out.Publish(bustest.Context(t), 6, slices.Values([]messages.Event{bad}))
	out.Publish(bustest.Context(t), 7, slices.Values(bustest.Events(bustest.Run(), 3, 3)))
	if err := out.Flush(bustest.Context(t)); err == nil {
		t.Error("no error")
	}
	awaitThrough(t, out, 5)
}

// A flush that waits for a server which does not answer holds up no other.
func TestHeldEventsPassABusyOutbox(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	logs := bustest.Logs(b)
	logs.Appending(runlogs.FewAppends + 1)
	begun, proceed, flushed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	slow, other := logs.Open(bustest.Run()), logs.Open(messages.Ref{Tenant: "acme", Run: "other"})
	slow.Publish(bustest.Context(t), 1, func(yield func(messages.Event) bool) {
		close(begun)
		<-proceed
		yield(bustest.Events(bustest.Run(), 1, 1)[0])
	})
	go func() { flushed <- slow.Flush(bustest.Context(t)) }()
	<-begun
	other.Publish(bustest.Context(t), 1, slices.Values(bustest.Events(messages.Ref{Tenant: "acme", Run: "other"}, 1, 1)))
	awaitThrough(t, other, 1)
	close(proceed)
	if err := <-flushed; err != nil {
		t.Error(err)
	}
}

// What was held back goes as fast as it is acknowledged. Acknowledgements that were lost hold it up for a moment only.
func TestHeldEventsWaitForAcknowledgements(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	logs := bustest.Logs(b)
	logs.Appending(runlogs.FewAppends + 1)
	out := logs.Open(bustest.Run())
	out.Publish(bustest.Context(t), 1, slices.Values(bustest.Events(bustest.Run(), 1, 1)))
	begun := time.Now()
	if err := logs.Unanswered(runlogs.MaxFlying); err != nil {
		t.Fatal(err)
	}
	logs.Appending(-runlogs.FewAppends)
	awaitThrough(t, out, 1)
	if waited := time.Since(begun); waited < runlogs.AckSilence {
		t.Errorf("it went after %v", waited)
	}
}

func awaitThrough(t *testing.T, out runlog.Outbox, seq uint64) {
	t.Helper()
	for ctx := bustest.Context(t); out.Through() != seq; time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("through %d, want %d", out.Through(), seq)
		}
	}
}
