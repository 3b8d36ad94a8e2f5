package bus_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
)

// sharing takes events until it is stopped; each comes on the channel.
func sharing(t *testing.T, b *bus.Bus) (got chan messages.Event, stop func()) {
	t.Helper()
	s, err := events.New(b).Share(bustest.Context(t), "test")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(bustest.Context(t))
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
		case <-bustest.Context(t).Done():
			t.Fatalf("got %v, want %d", numbers, n)
		}
	}
	return numbers
}

func TestShareEvents(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	bustest.PublishRaw(t, nc, bustest.Run(), bustest.Events(bustest.Run(), 1, 3)...) // before any consumer shares: history
	got, stop := sharing(t, b)
	bustest.PublishRaw(t, nc, bustest.Run(), bustest.Events(bustest.Run(), 4, 5)...)
	if _, err := bustest.NewJetStream(t, nc).Publish(bustest.Context(t), bustest.EventsAt(t, nc, "events.acme.run.step_start"), []byte("junk")); err != nil {
		t.Fatal(err)
	}
	if n := takeEvents(t, got, 2); n[0] != 4 || n[1] != 5 {
		t.Errorf("got %v, want 4 and 5", n)
	}
	settled(t, b)
	stop()
	bustest.PublishRaw(t, nc, bustest.Run(), bustest.Events(bustest.Run(), 6, 7)...) // no consumer is running
	got, stop = sharing(t, b)
	defer stop()
	if n := takeEvents(t, got, 2); n[0] != 6 || n[1] != 7 {
		t.Errorf("got %v, want 6 and 7", n)
	}
	if b.Skipped() == 0 {
		t.Error("junk was not counted")
	}
}

// Events are acknowledged together, and those of a few also when no more come.
func TestShareEventsAcknowledgesTogether(t *testing.T) {
	t.Parallel()
	const n = 300
	b, nc := bustest.OpenNew(t)
	acks, err := nc.SubscribeSync("$JS.ACK." + bustest.EventsIn(b, bustest.Run()) + ".test.>")
	if err != nil {
		t.Fatal(err)
	}
	got, stop := sharing(t, b)
	defer stop()
	bustest.PublishRaw(t, nc, bustest.Run(), bustest.Events(bustest.Run(), 1, n)...)
	takeEvents(t, got, n)
	settled(t, b)
	if had, _, err := acks.Pending(); err != nil || had == 0 || had > n/4 { // a busy machine delivers a few at a time
		t.Errorf("%d acknowledgements of %d events, %v", had, n, err)
	}
}

// A consumer of an older version, which had each event acknowledged, is replaced.
func TestShareEventsReplacesAnOlderConsumer(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	js := bustest.NewJetStream(t, nc)
	_, err := js.CreateOrUpdateConsumer(bustest.Context(t), bustest.EventsIn(b, bustest.Run()), jetstream.ConsumerConfig{
		Durable: "test", DeliverPolicy: jetstream.DeliverNewPolicy, AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: 30 * time.Second, MaxDeliver: -1, MaxAckPending: 4096,
	})
	if err != nil {
		t.Fatal(err)
	}
	got, stop := sharing(t, b)
	defer stop()
	bustest.PublishRaw(t, nc, bustest.Run(), bustest.Events(bustest.Run(), 1, 2)...)
	takeEvents(t, got, 2)
	cons, err := js.Consumer(bustest.Context(t), bustest.EventsIn(b, bustest.Run()), "test")
	if err != nil {
		t.Fatal(err)
	}
	if policy := cons.CachedInfo().Config.AckPolicy; policy != jetstream.AckAllPolicy {
		t.Errorf("acks of %s", policy)
	}
}

// settled waits until nothing is left to acknowledge.
func settled(t *testing.T, b *bus.Bus) {
	t.Helper()
	for ctx := bustest.Context(t); ; time.Sleep(5 * time.Millisecond) {
		l, ok, err := b.Stream(bustest.EventsIn(b, bustest.Run())).Lag(ctx, "test")
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
	b, nc := bustest.OpenNew(t)
	if _, err := events.New(b).Share(bustest.Context(t), "test"); err != nil {
		t.Fatal(err)
	}
	bustest.PublishRaw(t, nc, bustest.Run(), bustest.Events(bustest.Run(), 1, 2)...)
	cons, err := bustest.NewJetStream(t, nc).Consumer(bustest.Context(t), bustest.EventsIn(b, bustest.Run()), "test")
	if err != nil {
		t.Fatal(err)
	}
	batch, err := cons.Fetch(1)
	if err != nil {
		t.Fatal(err)
	}
	m := <-batch.Messages()
	for ctx := bustest.Context(t); ; time.Sleep(20 * time.Millisecond) { // the server sends a message before it counts it
		l, ok, err := b.Stream(bustest.EventsIn(b, bustest.Run())).Lag(ctx, "test")
		if err != nil {
			t.Fatalf("lag %+v %v %v, want two, and when the first came", l, ok, err)
		}
		if ok && l.Messages == 2 && !l.Oldest.IsZero() {
			break
		}
	}
	if err := m.Nak(); err != nil { // as the ack wait does
		t.Fatal(err)
	}
	s, err := events.New(b).Share(bustest.Context(t), "test")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(bustest.Context(t))
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
	b, nc := bustest.OpenNew(t)
	got, stop := sharing(t, b)
	defer stop()
	if err := bustest.NewJetStream(t, nc).DeleteConsumer(bustest.Context(t), bustest.EventsIn(b, bustest.Run()), "test"); err != nil {
		t.Fatal(err)
	}
	for ctx := bustest.Context(t); ; time.Sleep(20 * time.Millisecond) {
		if _, ok, err := b.Stream(bustest.EventsIn(b, bustest.Run())).Lag(ctx, "test"); err != nil {
			t.Fatal(err)
		} else if ok {
			break
		}
	}
	bustest.PublishRaw(t, nc, bustest.Run(), bustest.Events(bustest.Run(), 1, 1)...)
	takeEvents(t, got, 1)
}

func TestLagOfNobody(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	if l, ok, err := b.Stream(bustest.EventsIn(b, bustest.Run())).Lag(bustest.Context(t), "unknown"); ok || err != nil || l != (bus.Lag{}) {
		t.Errorf("%+v %v %v", l, ok, err)
	}
	if all, err := b.Lags(bustest.Context(t)); err != nil || len(all) != 0 {
		t.Errorf("%v %v", all, err)
	}
}

func TestWaits(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	bustest.PublishRaw(t, nc, bustest.Run(), bustest.Event(bustest.Run(), 1, messages.EventRunWaiting), bustest.Event(bustest.Run(), 2, messages.EventStepStart), bustest.Event(bustest.Run(), 3, messages.EventRunResumed))
	var names []string
	for f, err := range events.New(b).Waits(bustest.Context(t)) {
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
	b, nc := bustest.OpenNew(t)
	js := bustest.NewJetStream(t, nc)
	for _, subject := range []string{"tasks.high.a.r1", "tasks.high.a.r2", "tasks.low.b.r1", "tasks.low.c.r1"} {
		_, run, _ := messages.ParseTaskSubject(subject)
		if _, err := js.Publish(bustest.Context(t), bustest.QueueAt(b, run, subject), []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	depths, err := taskqueue.New(b).Depths(bustest.Context(t), 1)
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
