package bus_test

import (
	"context"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

// sharing takes events until it is stopped; each comes on the channel.
func sharing(t *testing.T, b *bus.Bus) (got chan messages.Event, stop func()) {
	t.Helper()
	s, err := b.ShareEvents(ctxFor(t), "test")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctxFor(t))
	done := make(chan error, 1)
	got = make(chan messages.Event, 1000)
	go func() { done <- s.Run(ctx, func(e messages.Event, _ bool) { got <- e }) }()
	stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	return got, stop
}

func takeEvents(t *testing.T, got chan messages.Event, n int) (numbers []uint64) {
	t.Helper()
	for range n {
		select {
		case e := <-got:
			numbers = append(numbers, e.Number())
		case <-ctxFor(t).Done():
			t.Fatalf("got %v, want %d", numbers, n)
		}
	}
	return numbers
}

func TestShareEvents(t *testing.T) {
	b, nc := openNew(t)
	publishRaw(t, nc, run1(), events(run1(), 1, 3)...) // before anybody shares: history
	got, stop := sharing(t, b)
	publishRaw(t, nc, run1(), events(run1(), 4, 5)...)
	if _, err := newJetStream(t, nc).Publish(ctxFor(t), "events.acme.run.step_start", []byte("junk")); err != nil {
		t.Fatal(err)
	}
	if n := takeEvents(t, got, 2); n[0] != 4 || n[1] != 5 {
		t.Errorf("got %v, want 4 and 5", n)
	}
	settled(t, b)
	stop()
	publishRaw(t, nc, run1(), events(run1(), 6, 7)...) // nobody is there
	got, stop = sharing(t, b)
	defer stop()
	if n := takeEvents(t, got, 2); n[0] != 6 || n[1] != 7 {
		t.Errorf("got %v, want 6 and 7", n)
	}
	if b.Skipped() == 0 {
		t.Error("junk was not counted")
	}
}

// settled waits until nothing is left to acknowledge.
func settled(t *testing.T, b *bus.Bus) {
	t.Helper()
	for ctx := ctxFor(t); ; time.Sleep(5 * time.Millisecond) {
		l, ok, err := b.Lag(ctx, bus.StreamEvents, "test")
		if err != nil {
			t.Fatal(err)
		}
		if ok && l.Messages == 0 {
			return
		}
	}
}

// What one had and did not count comes to another.
func TestShareEventsOfOneThatDied(t *testing.T) {
	b, nc := openNew(t)
	if _, err := b.ShareEvents(ctxFor(t), "test"); err != nil {
		t.Fatal(err)
	}
	publishRaw(t, nc, run1(), events(run1(), 1, 2)...)
	cons, err := newJetStream(t, nc).Consumer(ctxFor(t), bus.StreamEvents, "test")
	if err != nil {
		t.Fatal(err)
	}
	batch, err := cons.Fetch(1)
	if err != nil {
		t.Fatal(err)
	}
	m := <-batch.Messages()
	l, ok, err := b.Lag(ctxFor(t), bus.StreamEvents, "test")
	if err != nil || !ok || l.Messages != 2 || l.Oldest.IsZero() {
		t.Errorf("lag %+v %v %v, want two, and when the first came", l, ok, err)
	}
	if err := m.Nak(); err != nil { // as the ack wait does
		t.Fatal(err)
	}
	s, err := b.ShareEvents(ctxFor(t), "test")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctxFor(t))
	seen := map[uint64]bool{}
	if err := s.Run(ctx, func(e messages.Event, again bool) {
		if seen[e.Number()] = again; len(seen) == 2 {
			cancel()
		}
	}); err != nil {
		t.Fatal(err)
	}
	if !seen[1] || seen[2] || len(seen) != 2 {
		t.Errorf("%v, want that the first came again", seen)
	}
}

func TestShareEventsMakesTheConsumerAgain(t *testing.T) {
	b, nc := openNew(t)
	got, stop := sharing(t, b)
	defer stop()
	if err := newJetStream(t, nc).DeleteConsumer(ctxFor(t), bus.StreamEvents, "test"); err != nil {
		t.Fatal(err)
	}
	for ctx := ctxFor(t); ; time.Sleep(20 * time.Millisecond) {
		if _, ok, err := b.Lag(ctx, bus.StreamEvents, "test"); err != nil {
			t.Fatal(err)
		} else if ok {
			break
		}
	}
	publishRaw(t, nc, run1(), events(run1(), 1, 1)...)
	takeEvents(t, got, 1)
}

func TestLagOfNobody(t *testing.T) {
	b, _ := openNew(t)
	if l, ok, err := b.Lag(ctxFor(t), bus.StreamEvents, "nobody"); ok || err != nil || l != (bus.Lag{}) {
		t.Errorf("%+v %v %v", l, ok, err)
	}
	if all, err := b.Lags(ctxFor(t)); err != nil || len(all) != 0 {
		t.Errorf("%v %v", all, err)
	}
}

func TestWaits(t *testing.T) {
	b, nc := openNew(t)
	publishRaw(t, nc, run1(), event(run1(), 1, messages.EventRunWaiting), event(run1(), 2, messages.EventStepStart), event(run1(), 3, messages.EventRunResumed))
	var names []string
	for f, err := range b.Waits(ctxFor(t)) {
		if err != nil {
			t.Fatal(err)
		}
		if f.Position == 0 {
			break
		}
		e, ok := f.Event()
		if !ok {
			t.Fatalf("%s is no event", f.Data)
		}
		names = append(names, e.Name())
	}
	if len(names) != 2 || names[0] != messages.EventRunWaiting || names[1] != messages.EventRunResumed {
		t.Errorf("got %v", names)
	}
}

func TestDepths(t *testing.T) {
	b, nc := openNew(t)
	js := newJetStream(t, nc)
	for _, subject := range []string{"tasks.high.a.r1", "tasks.high.a.r2", "tasks.low.b.r1", "tasks.low.c.r1"} {
		if _, err := js.Publish(ctxFor(t), subject, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	depths, err := b.Depths(ctxFor(t), 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(depths) != 3 || depths[0].Tenant != "a" || depths[0].Queued != 2 || depths[0].Oldest.IsZero() {
		t.Fatalf("got %+v, want the fullest of three first", depths)
	}
	asked := 0
	for _, d := range depths {
		if !d.Oldest.IsZero() {
			asked++
		}
	}
	if asked != 2 {
		t.Errorf("the age of %d lanes was asked, want that of the fullest and of one more", asked)
	}
}
