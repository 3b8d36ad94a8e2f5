package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/control"
)

// dividedEvents opens a bus whose events are in four streams.
func dividedEvents(t *testing.T) (*bus.Bus, *nats.Conn) {
	t.Helper()
	b, nc := bustest.OpenDivided(t, 4)
	if n := events.New(b).Streams(); n != 4 {
		t.Skipf("events are in %d streams here", n)
	}
	return b, nc
}

// storeOf stores events of twenty runs by turns.
func storeOf(t *testing.T, b *bus.Bus, from, to int) {
	t.Helper()
	for n := from; n <= to; n++ {
		for i := range 20 {
			run, e := numbered(i), bustest.Event(numbered(i), n, messages.EventStepStart)
			store(t, b, b.Partitions(bus.StreamEvents).Subject(run, run.EventSubject(e.Name())), e)
		}
	}
}

// stray stores an event of a run in a stream in which the run is not.
func stray(t *testing.T, b *bus.Bus, run messages.Ref, e messages.Event) {
	t.Helper()
	store(t, b, bus.PartitionSubject(run.EventSubject(e.Name()), (bus.PartitionOf(run, 4)+1)%4, 4), e)
}

func store(t *testing.T, b *bus.Bus, subject string, e messages.Event) {
	t.Helper()
	body, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Store(bustest.Context(t), &nats.Msg{Subject: subject, Data: body, Header: nats.Header{}}); err != nil {
		t.Fatal(err)
	}
}

// A feed of four streams has each event once, those of a run in their order, and what is stored already in the order of its times. It
// continues at a position, also while events come, and after the connection was lost.
func TestFeedOfSeveralStreams(t *testing.T) {
	t.Parallel()
	s := bustest.Start(t)
	nc := bustest.Connect(t, s)
	if err := bus.Setup(bustest.Context(t), nc, bus.Streams{Partitions: 4}); err != nil {
		t.Fatal(err)
	}
	b, _ := bustest.OpenOver(t, nc, bustest.Quickly())
	st := events.New(b)
	storeOf(t, b, 1, 5)
	const all = 20 * 15
	var at events.Position
	next, seen, sum := map[messages.Ref]uint64{}, 0, uint64(0)
	var last time.Time
	for seen < all {
		at = at.Max(make(events.Position, 4))
		for f, err := range st.Feed(bustest.Context(t), slices.Clone(at)) {
			if err != nil {
				t.Fatal(err)
			}
			if f.Position == 0 {
				continue
			}
			e, ok := f.Event()
			if !ok || e.Number() != next[e.Ref()]+1 {
				t.Fatalf("event %s after %d of %s", e.Sequence, next[e.Ref()], e.Ref())
			}
			if f.Seq != at[f.Stream]+1 || f.Position != sum+1 {
				t.Fatalf("%d of stream %d after %v, position %d after %d", f.Seq, f.Stream, at, f.Position, sum)
			}
			if seen < 100 && f.Time.Before(last) {
				t.Errorf("an event of %v after one of %v", f.Time, last)
			}
			next[e.Ref()], last, at[f.Stream], sum = e.Number(), f.Time, f.Seq, f.Position
			if seen++; seen == 50 || seen == 170 || seen == all { // continue elsewhere
				break
			}
			switch seen {
			case 100:
				storeOf(t, b, 6, 10)
			case 200:
				s.StopNATS()
				if err := s.StartNATS(); err != nil {
					t.Fatal(err)
				}
				bustest.AwaitConnected(t, b)
				storeOf(t, b, 11, 15)
			}
		}
	}
	state, err := st.State(bustest.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	if state.Last.String() != at.String() || state.Last.Sum() != all || !at.Reaches(state.Last) {
		t.Errorf("read up to %s of %s", at, state.Last)
	}
}

// A position of another number of streams is refused.
func TestPositions(t *testing.T) {
	p, err := events.ParsePosition("17.4.0.22", 4)
	if err != nil || p.Sum() != 43 || p.String() != "17.4.0.22" {
		t.Errorf("%v, %v", p, err)
	}
	for text, streams := range map[string]int{"17.4.0.22": 2, "17": 4, "1.2": 1, "a.b": 2, "1..2": 3, "-1": 1, "99999999999999999999": 1} {
		if p, err := events.ParsePosition(text, streams); err == nil {
			t.Errorf("%q in %d streams is %v", text, streams, p)
		}
	}
	b, _ := dividedEvents(t)
	for _, err := range events.New(b).Feed(bustest.Context(t), events.Position{7}) {
		if err == nil || !strings.Contains(err.Error(), "4") {
			t.Errorf("got %v", err)
		}
		break
	}
	for _, err := range events.New(b).Feed(bustest.Context(t), events.Position{0, 0, 9, 0}) {
		if !errors.Is(err, bus.ErrAhead) {
			t.Errorf("got %v, want ErrAhead", err)
		}
		break
	}
}

// What stands in the wrong stream is none of a run's events, whatever reads them, and an announcement is in the stream of its tenant.
func TestStrayEvents(t *testing.T) {
	t.Parallel()
	b, nc := dividedEvents(t)
	st, run := events.New(b), bustest.Run()
	ctx, cancel := context.WithCancel(bustest.Context(t))
	hub := st.NewHub()
	var done sync.WaitGroup
	done.Go(func() { _ = hub.Run(ctx) })
	ends := make(chan messages.Ref, 10)
	done.Go(func() {
		_ = st.RunEnds(ctx, func(_ context.Context, e events.RunEnd) error { ends <- e.Run; return nil })
	})
	defer done.Wait()
	defer cancel()
	other := messages.Ref{Tenant: "acme", Run: "other"}
	stray(t, b, run, bustest.Event(run, 1, messages.EventRunFinished))
	stray(t, b, other, bustest.Event(other, 1, messages.EventRunFinished))
	want := []messages.Event{bustest.Event(run, 1, messages.EventRunQueued), bustest.Event(run, 2, messages.EventRunFinished)}
	bustest.PublishRaw(t, nc, run, want...)
	if diff := cmp.Diff(want, bustest.Watched(t, b, run, time.Minute)); diff != "" {
		t.Errorf("a watch: %s", diff)
	}
	var watched []messages.Event
	for e := range bustest.Values(t, hub.Watch(ctx, run)) {
		watched = append(watched, e)
	}
	if diff := cmp.Diff(want, watched); diff != "" {
		t.Errorf("a hub: %s", diff)
	}
	if diff := cmp.Diff([]uint64{1, 2}, bustest.StoredNumbers(t, b, bus.EveryEvent)); diff != "" {
		t.Errorf("all events: %s", diff)
	}
	if got := <-ends; got != run {
		t.Errorf("%s has ended", got)
	}
	if ended, err := st.HasEnded(ctx, other); ended || err != nil {
		t.Errorf("a run has ended elsewhere: %v, %v", ended, err)
	}
	var fed []uint64
	strays := 0
	for f, err := range st.Feed(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if f.Position == 0 {
			break
		}
		if f.Stray {
			strays++
		}
		for e := range f.Events() {
			fed = append(fed, e.Number())
		}
	}
	if diff := cmp.Diff([]uint64{1, 2}, fed); diff != "" || strays != 2 {
		t.Errorf("a feed with %d strays: %s", strays, diff)
	}
	if err := st.AnnounceTo(ctx, "acme", "something", struct{}{}); err != nil {
		t.Fatal(err)
	}
	beside := messages.Ref{Tenant: "acme", Run: messages.NoRun}
	if n := bustest.StreamLength(t, nc, bustest.EventsIn(b, beside)); n == 0 {
		t.Errorf("nothing is in the stream of %s", beside)
	}
	select {
	case got := <-ends:
		t.Errorf("%s has ended too", got)
	default:
	}
}

// Pages of a tenant's events have all of them, in the order of each run, and continue with what comes.
func TestEventPagesOfSeveralStreams(t *testing.T) {
	t.Parallel()
	b, _ := dividedEvents(t)
	st := events.New(b)
	req := control.EventsRequest{Tenant: "acme", Limit: 7}
	next, seen := map[string]uint64{}, 0
	read := func(want int) {
		t.Helper()
		for more := true; more; {
			if err := req.Check(); err != nil {
				t.Fatal(err)
			}
			page, err := st.Page(bustest.Context(t), &req, 4000)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range page.Events {
				var e messages.Event
				if err := json.Unmarshal(s.Event, &e); err != nil || e.Number() != next[e.Subject]+1 {
					t.Fatalf("event %s after %d of %s: %v", e.Sequence, next[e.Subject], e.Subject, err)
				}
				next[e.Subject]++
				seen++
			}
			if advances := req.Follow(page); !advances && page.More {
				t.Fatalf("a page does not advance: %+v", page)
			}
			more = page.More
		}
		if seen != want {
			t.Errorf("%d events, want %d", seen, want)
		}
	}
	read(0)
	storeOf(t, b, 1, 4)
	read(80)
	read(80)
	storeOf(t, b, 5, 5)
	read(100)
	for _, wrong := range []control.EventsRequest{
		{Tenant: "acme", Limit: 7, After: 3}, {Tenant: "acme", Limit: 7, Position: "1.2"}, {Tenant: "acme", ID: "run-1", Limit: 7, Position: req.Position},
	} {
		field, ok := errors.AsType[*messages.FieldError](func() error { _, err := st.Page(bustest.Context(t), &wrong, 4000); return err }())
		if !ok {
			t.Errorf("%+v was answered", wrong)
		} else if field.Field != "after" && field.Field != "position" {
			t.Errorf("%+v: %v", wrong, field)
		}
	}
}

// Several who share count each event once, from all streams.
func TestShareEventsOfSeveralStreams(t *testing.T) {
	t.Parallel()
	b, _ := dividedEvents(t)
	ctx, cancel := context.WithCancel(bustest.Context(t))
	var mu sync.Mutex
	seen, all := map[string]int{}, make(chan struct{})
	var done sync.WaitGroup
	for range 2 {
		shared, err := events.New(b).Share(ctx, "test")
		if err != nil {
			t.Fatal(err)
		}
		done.Go(func() {
			_ = shared.Run(ctx, func(e messages.Event, _ bool) {
				mu.Lock()
				defer mu.Unlock()
				if seen[e.ID]++; len(seen) == 100 {
					close(all)
				}
			})
		})
	}
	storeOf(t, b, 1, 5)
	select {
	case <-all:
	case <-ctx.Done():
		t.Errorf("%d events", len(seen))
	}
	cancel()
	done.Wait()
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s came %d times", id, n)
		}
	}
	if len(seen) != 100 {
		t.Errorf("%d events", len(seen))
	}
}

// Ends that come from many streams at once and are taken slowly, one at a time, are taken once each by two dispatchers: none waits for
// its turn beyond the ack wait, after which the other has it too.
func TestEndsOfManyStreamsAreTakenOnce(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenDivided(t, 8)
	ctx, cancel := context.WithCancel(bustest.Context(t))
	defer cancel()
	const ends, slow = 1200, 12 * time.Millisecond
	for i := range ends {
		run := messages.Ref{Tenant: "acme", Run: fmt.Sprintf("run-%d", i)}
		bustest.PublishRaw(t, nc, run, bustest.Event(run, 1, messages.EventRunFinished))
	}
	var mu sync.Mutex
	taken, again := map[messages.Ref]bool{}, 0
	take := func(ctx context.Context, e events.RunEnd) error {
		mu.Lock()
		if taken[e.Run] {
			again++
		}
		if taken[e.Run] = true; len(taken) == ends {
			cancel()
		}
		mu.Unlock()
		return bus.Pause(ctx, slow)
	}
	var dispatchers sync.WaitGroup
	for range 2 {
		dispatchers.Go(func() {
			if err := events.New(b).RunEnds(ctx, take); err != nil {
				t.Error(err)
			}
		})
	}
	dispatchers.Wait()
	if len(taken) != ends || again > 0 {
		t.Errorf("%d of %d ends were taken, and %d of them again", len(taken), ends, again)
	}
}
