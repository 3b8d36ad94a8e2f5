package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/deploy/embedded"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/control"
)

// paged is a bus that reads events by pages of another, as a client of a tenant does by way of a dispatcher. While down is
// set there is no answer.
func paged(tb testing.TB, s *embedded.Servers, b *bus.Bus, limit, room int) (p *bus.Bus, nc *nats.Conn, down *atomic.Bool) {
	tb.Helper()
	nc, down = bustest.Connect(tb, s), new(atomic.Bool)
	p, err := bus.Open(bustest.Context(tb), nc, bus.Config{
		Budget: time.Minute, Streams: []string{},
		Pages: func(ctx context.Context, r *control.EventsRequest) (*control.EventPage, error) {
			if down.Load() {
				return nil, nats.ErrNoResponders
			}
			asked := *r
			asked.Limit = limit
			if err := asked.Check(); err != nil {
				return nil, err
			}
			return events.New(b).Page(ctx, &asked, room)
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return p, nc, down
}

func TestPagedWatchPutsEventsInOrder(t *testing.T) {
	s := bustest.Start(t)
	b, nc := bustest.Open(t, s, bus.Config{})
	e := bustest.Events(bustest.Run(), 1, 6)
	bustest.PublishRaw(t, nc, bustest.Run(), e[0], e[2], e[2], e[0], e[1], e[4], e[5], e[3])
	end := bustest.Event(bustest.Run(), 7, messages.EventRunFinished)
	bustest.PublishRaw(t, nc, bustest.Run(), end, e[5], end)
	for name, tc := range map[string]struct{ limit, room int }{
		"one page": {0, 512 << 10}, "small pages": {2, 512 << 10}, "one event each": {0, 1}, "two for their size": {0, 700},
	} {
		t.Run(name, func(t *testing.T) {
			p, _, _ := paged(t, s, b, tc.limit, tc.room)
			if diff := cmp.Diff(append(bustest.Events(bustest.Run(), 1, 6), end), bustest.Watched(t, p, bustest.Run(), time.Minute)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A watcher sees each event once though it is slow, the connection goes away, and dispatchers do not always answer.
func TestPagedWatchMissesNothing(t *testing.T) {
	const n = 400
	for name, trouble := range map[string]func(t *testing.T, s *embedded.Servers, down *atomic.Bool) (over func()){
		"slow": func(*testing.T, *embedded.Servers, *atomic.Bool) func() { return func() {} },
		"outage": func(_ *testing.T, _ *embedded.Servers, down *atomic.Bool) func() {
			down.Store(true)
			return func() { down.Store(false) }
		},
		"restart": func(t *testing.T, s *embedded.Servers, _ *atomic.Bool) func() {
			t.Helper()
			s.StopNATS()
			if err := s.StartNATS(); err != nil {
				t.Error(err)
			}
			return func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := bustest.Start(t)
			b, nc := bustest.Open(t, s, bustest.Quickly())
			p, _, down := paged(t, s, b, 0, 64<<10)
			run := bustest.Run()
			bustest.PublishRaw(t, nc, run, bustest.Events(run, 1, 10)...)
			next := uint64(0)
			for e, err := range events.New(p).Watch(bustest.Context(t), run) {
				if err != nil {
					t.Fatal(err)
				}
				if next++; e.Number() != next {
					t.Fatalf("event %d came after %d", e.Number(), next-1)
				}
				if next != 5 {
					continue
				}
				over := trouble(t, s, down) // while it is not looking
				out := bustest.Logs(b).Open(run)
				for i := 11; i < n; i++ {
					out.Publish(bustest.Context(t), uint64(i), slices.Values(bustest.Events(run, i, i)))
				}
				if err := out.Finish(bustest.Context(t), bustest.Event(run, n, messages.EventRunFinished)); err != nil {
					t.Fatal(err)
				}
				over()
			}
			if next != n {
				t.Errorf("%d events, want %d", next, n)
			}
		})
	}
}

// What comes in its order is given though no dispatcher answers.
func TestPagedWatchWithoutDispatcher(t *testing.T) {
	s := bustest.Start(t)
	b, nc := bustest.Open(t, s, bus.Config{})
	p, _, down := paged(t, s, b, 0, 64<<10)
	run := bustest.Run()
	bustest.PublishRaw(t, nc, run, bustest.Event(run, 1, messages.EventStepStart))
	var got []uint64
	for e, err := range events.New(p).Watch(bustest.Context(t), run) {
		if err != nil {
			t.Fatal(err)
		}
		down.Store(true)
		if got = append(got, e.Number()); len(got) < 3 {
			bustest.PublishRaw(t, nc, run, bustest.Event(run, len(got)+1, messages.EventStepStart))
		} else {
			break
		}
	}
	if diff := cmp.Diff(bustest.Numbers(1, 3), got); diff != "" {
		t.Error(diff)
	}
}

func TestPagedWatchMarksWhatIsMissing(t *testing.T) {
	s := bustest.Start(t)
	b, nc := bustest.Open(t, s, bus.Config{})
	p, _, _ := paged(t, s, b, 0, 64<<10)
	bustest.PublishRaw(t, nc, bustest.Run(), bustest.Event(bustest.Run(), 2, messages.EventStepStart), bustest.Event(bustest.Run(), 5, messages.EventStepStart),
		bustest.Event(bustest.Run(), 6, messages.EventRunFinished))
	var got []string
	for _, e := range bustest.Watched(t, p, bustest.Run(), 50*time.Millisecond) {
		got = append(got, fmt.Sprintf("%s %s %s", e.Name(), e.Sequence, e.Data))
	}
	want := []string{
		`events_missing 1 {"first":1,"last":1}`, `step_start 2 {"step":2}`,
		`events_missing 4 {"first":3,"last":4}`, `step_start 5 {"step":5}`, `run_finished 6 {"step":6}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPagedWatchMarksWhatHasExpired(t *testing.T) {
	s := bustest.Start(t)
	b, nc := bustest.Open(t, s, bus.Config{})
	p, _, _ := paged(t, s, b, 0, 64<<10)
	bustest.PublishRaw(t, nc, bustest.Run(), append(bustest.Events(bustest.Run(), 1, 3), bustest.Event(bustest.Run(), 4, messages.EventRunFinished))...)
	stream, err := bustest.NewJetStream(t, nc).Stream(bustest.Context(t), bustest.EventsIn(b, bustest.Run()))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(bustest.Context(t), jetstream.WithPurgeSequence(3)); err != nil {
		t.Fatal(err)
	}
	const patience = 20 * time.Millisecond
	<-time.After(13 * patience) // until it counts as old
	var got []string
	for _, e := range bustest.Watched(t, p, bustest.Run(), patience) {
		got = append(got, e.Type+" "+e.Sequence)
	}
	want := []string{events.TypeEventsExpired + " 2", "longshore.step_start.v1 3", "longshore.run_finished.v1 4"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A tenant's own users may publish what they like among them: it is not believed unless it is an event of the run, and a
// number that is far ahead hides nothing.
func TestPagedWatchSkipsWhatIsNoEvent(t *testing.T) {
	s := bustest.Start(t)
	b, nc := bustest.Open(t, s, bus.Config{})
	p, own, _ := paged(t, s, b, 0, 64<<10)
	run := bustest.Run()
	bustest.PublishRaw(t, nc, run, bustest.Event(run, 1, messages.EventStepStart))
	other, _ := json.Marshal(bustest.Event(messages.Ref{Tenant: "acme", Run: "other"}, 2, messages.EventStepStart))
	far, _ := json.Marshal(bustest.Event(run, 9_999_999, messages.EventStepStart))
	var got []uint64
	for e, err := range events.New(p).WatchPatiently(bustest.Context(t), run, time.Minute) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, e.Number()); e.Number() != 1 {
			continue
		}
		for _, body := range []string{"", "{", "null", "[]", `{"stream":"TASKS","seq":1}`, `{"sequence":"2"}`, string(other), string(far)} {
			if err := own.Publish(run.EventSubject(messages.EventStepStart), []byte(body)); err != nil {
				t.Fatal(err)
			}
		}
		bustest.PublishRaw(t, nc, run, bustest.Event(run, 2, messages.EventStepStart), bustest.Event(run, 3, messages.EventRunFinished))
	}
	if diff := cmp.Diff(bustest.Numbers(1, 3), got); diff != "" {
		t.Error(diff)
	}
}

func TestPagedWatchEnds(t *testing.T) {
	s := bustest.Start(t)
	b, nc := bustest.Open(t, s, bus.Config{})
	bustest.PublishRaw(t, nc, bustest.Run(), bustest.Events(bustest.Run(), 1, 2)...)
	why := errors.New("enough")
	t.Run("with its context", func(t *testing.T) {
		p, _, _ := paged(t, s, b, 0, 64<<10)
		ctx, cancel := context.WithCancelCause(bustest.Context(t))
		defer cancel(nil)
		var last error
		n := 0
		for _, last = range events.New(p).Watch(ctx, bustest.Run()) {
			if n++; n == 2 {
				cancel(why)
			}
		}
		if n != 3 || !errors.Is(last, why) {
			t.Errorf("got %d and %v, want 2 events and the cause", n, last)
		}
	})
	for name, refusal := range map[string]error{
		"refused":       control.Forbidden("not yours"),
		"a wrong field": fmt.Errorf("ask: %w", &messages.FieldError{Field: "id", Reason: "is wrong"}),
	} {
		t.Run(name, func(t *testing.T) {
			p, err := bus.Open(bustest.Context(t), bustest.Connect(t, s), bus.Config{
				Streams: []string{}, Pages: func(context.Context, *control.EventsRequest) (*control.EventPage, error) { return nil, refusal },
			})
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, err = range events.New(p).Watch(bustest.Context(t), bustest.Run()) {
				n++
			}
			if n != 1 || !errors.Is(err, refusal) && !strings.Contains(err.Error(), refusal.Error()) {
				t.Errorf("got %d, %v, want the refusal", n, err)
			}
		})
	}
	t.Run("a page that does not advance", func(t *testing.T) {
		p, err := bus.Open(bustest.Context(t), bustest.Connect(t, s), bus.Config{
			Streams: []string{}, Pages: func(context.Context, *control.EventsRequest) (*control.EventPage, error) {
				return &control.EventPage{More: true}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, err = range events.New(p).Watch(bustest.Context(t), bustest.Run()) {
			if err == nil {
				t.Error("an event")
			}
		}
		if err == nil {
			t.Error("no error")
		}
		for _, err = range events.New(p).EventsOf(bustest.Context(t), "acme", time.Time{}) {
			if err == nil {
				t.Error("an event")
			}
		}
		if err == nil {
			t.Error("no error")
		}
	})
}

// Events of a tenant come in pages as they come from the stream.
func TestPagedEvents(t *testing.T) {
	s := bustest.Start(t)
	b, nc := bustest.Open(t, s, bus.Config{})
	other := messages.Ref{Tenant: "other", Run: "run-1"}
	second := messages.Ref{Tenant: bustest.Run().Tenant, Run: "second"}
	bustest.PublishRaw(t, nc, bustest.Run(), bustest.Events(bustest.Run(), 1, 20)...)
	bustest.PublishRaw(t, nc, other, bustest.Events(other, 1, 2)...)
	bustest.PublishRaw(t, nc, second, bustest.Events(second, 1, 3)...)
	stream, err := bustest.NewJetStream(t, nc).Stream(bustest.Context(t), bustest.EventsIn(b, bustest.Run()))
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.GetMsg(bustest.Context(t), 18)
	if err != nil {
		t.Fatal(err)
	}
	p, _, _ := paged(t, s, b, 7, 64<<10)
	for name, tc := range map[string]struct {
		since time.Time
		want  int
	}{"all": {want: 23}, "since": {m.Time, 6}, "since later": {time.Now().Add(time.Hour), 0}} {
		t.Run(name, func(t *testing.T) {
			var want, got []messages.Event
			for e := range bustest.Values(t, events.New(b).EventsOf(bustest.Context(t), bustest.Run().Tenant, tc.since)) {
				want = append(want, e)
			}
			for e := range bustest.Values(t, events.New(p).EventsOf(bustest.Context(t), bustest.Run().Tenant, tc.since)) {
				got = append(got, e)
			}
			if diff := cmp.Diff(want, got); diff != "" || len(got) != tc.want {
				t.Errorf("%d events, want %d: %s", len(got), tc.want, diff)
			}
		})
	}
}

// A page is bounded in bytes, and its first event always comes.
func TestEventPageIsBounded(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	bustest.PublishRaw(t, nc, bustest.Run(), bustest.Events(bustest.Run(), 1, 100)...)
	for _, room := range []int{1, 1000, 10_000, 1 << 20} {
		r := control.EventsRequest{Tenant: bustest.Run().Tenant, ID: bustest.Run().Run}
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
		n := 0
		for more := true; more; {
			page, err := events.New(b).Page(bustest.Context(t), &r, room)
			if err != nil {
				t.Fatal(err)
			}
			body, err := json.Marshal(page)
			if err != nil {
				t.Fatal(err)
			}
			if len(page.Events) > 1 && len(body) > room+100 {
				t.Errorf("a page of %d bytes, want %d", len(body), room)
			}
			n += len(page.Events)
			r.After, more = page.Next, page.More
		}
		if n != 100 {
			t.Errorf("%d events in pages of %d bytes", n, room)
		}
	}
}
