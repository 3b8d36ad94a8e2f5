package bus_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/runlog"
)

// While many appends are on their way events wait, in order, and count as not published. What waits is sent when its
// owner flushes, when the appends are through, and after a while in any case.
func TestEventsWaitForAppends(t *testing.T) {
	many := int64(bus.FewAppends + 1)
	for name, release := range map[string]func(*bus.Bus, func() error) error{
		"flush":   func(_ *bus.Bus, flush func() error) error { return flush() },
		"lull":    func(b *bus.Bus, _ func() error) error { b.Appending(-many); return nil },
		"a while": func(*bus.Bus, func() error) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := bustest.OpenNew(t)
			out := b.Open(bustest.Run())
			out.Publish(bustest.Context(t), 1, slices.Values(bustest.Events(bustest.Run(), 1, 1)))
			if err := out.Flush(bustest.Context(t)); err != nil {
				t.Fatal(err)
			}
			b.Appending(many)
			out.Publish(bustest.Context(t), 2, slices.Values(bustest.Events(bustest.Run(), 2, 3)))
			out.Publish(bustest.Context(t), 3, slices.Values([]messages.Event(nil)))
			out.Publish(bustest.Context(t), 4, slices.Values(bustest.Events(bustest.Run(), 4, 4)))
			if err := release(b, func() error { return out.Flush(bustest.Context(t)) }); err != nil {
				t.Fatal(err)
			}
			awaitThrough(t, out, 4)
			if diff := cmp.Diff(bustest.Numbers(1, 4), storedNumbers(t, b, bustest.Run().EventFilter())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What is held back is bounded.
func TestFewEventsWait(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	b.Appending(bus.FewAppends + 1)
	out := b.Open(bustest.Run())
	const entries = 500
	for i := range entries {
		out.Publish(bustest.Context(t), uint64(i+1), slices.Values(bustest.Events(bustest.Run(), i+1, i+1)))
	}
	if err := out.Flush(bustest.Context(t)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(bustest.Numbers(1, entries), storedNumbers(t, b, bustest.Run().EventFilter())); diff != "" {
		t.Error(diff)
	}
}

// An event that cannot be sent is found when it is made, maybe much later, and stops its outbox.
func TestBadEventAmongThoseThatWait(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	b.Appending(bus.FewAppends + 1)
	out := b.Open(bustest.Run())
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

// Whoever waits in a flush, for a server that does not answer, holds up nobody else.
func TestHeldEventsPassABusyOutbox(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	b.Appending(bus.FewAppends + 1)
	begun, goOn, flushed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	slow, other := b.Open(bustest.Run()), b.Open(messages.Ref{Tenant: "acme", Run: "other"})
	slow.Publish(bustest.Context(t), 1, func(yield func(messages.Event) bool) {
		close(begun)
		<-goOn
		yield(bustest.Events(bustest.Run(), 1, 1)[0])
	})
	go func() { flushed <- slow.Flush(bustest.Context(t)) }()
	<-begun
	other.Publish(bustest.Context(t), 1, slices.Values(bustest.Events(messages.Ref{Tenant: "acme", Run: "other"}, 1, 1)))
	awaitThrough(t, other, 1)
	close(goOn)
	if err := <-flushed; err != nil {
		t.Error(err)
	}
}

// What was held back goes as fast as it is acknowledged. Acknowledgements that were lost hold it up for a moment only.
func TestHeldEventsWaitForAcknowledgements(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	b.Appending(bus.FewAppends + 1)
	out := b.Open(bustest.Run())
	out.Publish(bustest.Context(t), 1, slices.Values(bustest.Events(bustest.Run(), 1, 1)))
	begun := time.Now()
	b.Unanswered(bus.MaxFlying)
	b.Appending(-bus.FewAppends)
	awaitThrough(t, out, 1)
	if waited := time.Since(begun); waited < bus.AckSilence {
		t.Errorf("it went after %v", waited)
	}
}

// Answers to requests are no acknowledgements of events.
func TestRequestsAcknowledgeNothing(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	subject := echo(t, nc)
	b.Appending(bus.FewAppends + 1)
	out := b.Open(bustest.Run())
	out.Publish(bustest.Context(t), 1, slices.Values(bustest.Events(bustest.Run(), 1, 1)))
	b.Unanswered(bus.MaxFlying)
	b.Appending(-bus.FewAppends)
	ctx := bustest.Context(t)
	for out.Through() != 1 {
		if _, err := b.Ask(ctx, &nats.Msg{Subject: subject}, time.Minute); err != nil {
			t.Fatalf("it is held back while requests are answered: %v", err)
		}
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
