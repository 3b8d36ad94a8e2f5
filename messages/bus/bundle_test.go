package bus_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/tracing"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/record"
)

// stepsOf are events that come in bundles, but for the first and the last.
func stepsOf(run messages.Ref, steps int) []messages.Event {
	names := []string{messages.EventRunQueued, messages.EventRunStarted}
	for range steps {
		names = append(names, messages.EventStepStart, messages.EventMessageEnd, messages.EventStepEnd)
	}
	names = append(names, messages.EventRunWaiting, messages.EventRunResumed, messages.EventStepStart, messages.EventTurnEnd, messages.EventRunFinished)
	var out []messages.Event
	for i, name := range names {
		out = append(out, bustest.Event(run, i+1, name))
	}
	return out
}

// publish stores the events of a run, some of them in bundles.
func publish(t *testing.T, b *bus.Bus, run messages.Ref, all []messages.Event) {
	t.Helper()
	out := runlogs.New(b, runlogs.Config{Bundles: true}).Open(run)
	last := len(all) - 1
	out.Publish(bustest.Context(t), 1, slices.Values(all[:4])) // cuts the first step
	out.Publish(bustest.Context(t), 2, slices.Values(all[4:last]))
	if err := out.Finish(bustest.Context(t), all[last]); err != nil {
		t.Fatal(err)
	}
}

func numbersOf(all []messages.Event) (out []uint64) {
	for i := range all {
		out = append(out, all[i].Number())
	}
	return out
}

// Each reader of events sees those of a bundle one by one, with the bytes that they have alone.
func TestBundlesAreReadOneByOne(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	st, run := events.New(b), bustest.Run()
	all := stepsOf(run, 3)
	want := numbersOf(all)
	hub := st.NewHub()
	ctx, cancel := context.WithCancel(bustest.Context(t))
	followed := make(chan uint64, len(all))
	ended := make(chan struct{})
	hubEnded := make(chan error, 1)
	go func() { hubEnded <- hub.Run(ctx) }()
	shared, stop := sharing(t, b)
	defer stop()
	traced, err := tracing.New(b).Open(ctx, messages.EventStepEnd, messages.EventRunFinished)
	if err != nil {
		t.Fatal(err)
	}
	following := make(chan struct{})
	go func() {
		defer close(ended)
		for e, err := range st.Follow(ctx, bus.EveryEvent) {
			if err != nil {
				return
			}
			if e.Subject == "first" {
				close(following)
				continue
			}
			followed <- e.Number()
		}
	}()
	first := messages.Ref{Tenant: run.Tenant, Run: "first"}
	for begun := false; !begun; { // until it follows
		bustest.PublishRaw(t, nc, first, bustest.Event(first, 1, messages.EventRunFinished))
		select {
		case <-following:
			begun = true
		case <-time.After(20 * time.Millisecond):
		}
	}
	publish(t, b, run, all)

	if n := bustest.StreamLength(t, nc, bustest.EventsIn(b, run)); n > 12 {
		t.Errorf("%d messages", n)
	}
	if diff := cmp.Diff(want, bustest.StoredNumbers(t, b, run.EventFilter())); diff != "" {
		t.Errorf("stored: %s", diff)
	}
	if diff := cmp.Diff(all, bustest.Watched(t, b, run, time.Minute)); diff != "" {
		t.Errorf("watched: %s", diff)
	}
	var got []messages.Event
	for e := range bustest.Values(t, hub.Watch(ctx, run)) {
		got = append(got, e)
	}
	if diff := cmp.Diff(all, got); diff != "" {
		t.Errorf("watched by the hub: %s", diff)
	}
	var numbers []uint64
	for len(numbers) < len(all) {
		if e := <-shared; e.Subject != first.Run {
			numbers = append(numbers, e.Number())
		}
	}
	if diff := cmp.Diff(want, numbers); diff != "" {
		t.Errorf("shared: %s", diff)
	}
	numbers = nil
	for f := range bustest.Values(t, st.FeedRun(ctx, run)) {
		for e, text := range f.Events() {
			numbers = append(numbers, e.Number())
			if !bytes.Equal(text, record.AppendEvent(nil, &all[e.Number()-1])) {
				t.Errorf("event %d: %s", e.Number(), text)
			}
		}
	}
	if diff := cmp.Diff(want, numbers); diff != "" {
		t.Errorf("fed: %s", diff)
	}
	numbers = nil
	for range all {
		numbers = append(numbers, <-followed)
	}
	if diff := cmp.Diff(want, numbers); diff != "" {
		t.Errorf("followed: %s", diff)
	}
	numbers = nil
	tracingCtx, tracedAll := context.WithCancel(ctx)
	defer tracedAll()
	traced.Run(tracingCtx, func(_ context.Context, some []tracing.Event) ([]int, error) {
		var again []int
		for i := range some {
			switch {
			case some[i].Run != run:
			case some[i].Name() == messages.EventStepEnd && some[i].Delivered == 1:
				again = append(again, i) // a bundle comes again as a whole
			default:
				numbers = append(numbers, some[i].Number())
			}
		}
		if len(numbers) == 4 {
			tracedAll()
		}
		return again, nil
	})
	slices.Sort(numbers)
	if diff := cmp.Diff([]uint64{5, 8, 11, 16}, numbers); diff != "" {
		t.Errorf("traced: %s", diff)
	}
	cancel()
	<-ended
	if err := <-hubEnded; err != nil {
		t.Error(err)
	}
	if b.Skipped() != 0 {
		t.Errorf("%d messages are called foreign", b.Skipped())
	}
}

// A page holds all events of a bundle or none, and pages end.
func TestPagesOfBundles(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	st, run := events.New(b), bustest.Run()
	all := stepsOf(run, 30)
	publish(t, b, run, all)
	for _, room := range []int{1, 2000, 1 << 20} {
		var numbers []uint64
		r := &control.EventsRequest{Tenant: run.Tenant, ID: run.Run, Limit: 2}
		for {
			page, err := st.Page(bustest.Context(t), r, room)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range page.Events {
				var e messages.Event
				if err := json.Unmarshal(s.Event, &e); err != nil {
					t.Fatal(err)
				}
				numbers = append(numbers, e.Number())
			}
			if !page.More {
				break
			}
			if page.Next <= r.After {
				t.Fatalf("room %d: a page ends at %d, after %d", room, page.Next, r.After)
			}
			r.After = page.Next
		}
		if diff := cmp.Diff(numbersOf(all), numbers); diff != "" {
			t.Errorf("room %d: %s", room, diff)
		}
	}
}

func TestEachOfBundles(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	run := bustest.Run()
	one := func(n int, name, data string) string {
		e := bustest.Event(run, n, name)
		e.Data = json.RawMessage(data)
		return string(record.AppendEvent(nil, &e))
	}
	a, z := one(1, messages.EventStepStart, `{"step":1}`), one(2, messages.EventStepEnd, `{"step":1}`)
	nested := one(3, messages.EventToolExecutionEnd, `{"meta":[{},{"specversion":"1.0","id":"x"}]}`)
	other := bustest.Event(messages.Ref{Tenant: "acme", Run: "other"}, 4, messages.EventStepStart)
	foreign := string(record.AppendEvent(nil, &other))
	subject := run.EventSubject(messages.NameBundle)
	for name, tt := range map[string]struct {
		subject, data string
		want          []uint64
		foreign       uint64
	}{
		"as it is written":        {subject, "[" + a + "," + z + "]", []uint64{1, 2}, 0},
		"of one":                  {subject, "[" + a + "]", []uint64{1}, 0},
		"with spaces":             {subject, " [ " + a + " , " + z + "\n] ", []uint64{1, 2}, 0},
		"what looks like the end": {subject, "[" + a + "," + nested + "," + z + "]", []uint64{1, 3, 2}, 0},
		"of another run":          {subject, "[" + a + "," + foreign + "," + z + "]", []uint64{1, 2}, 1},
		"of anything":             {subject, "[" + a + `,null,1,"x",[],{},` + z + "]", []uint64{1, 2}, 5},
		"in one another":          {subject, "[" + a + "," + one(5, messages.NameBundle, "[]") + "]", []uint64{1}, 1},
		"of nothing":              {subject, "[]", nil, 0},
		"no list":                 {subject, a, nil, 1},
		"nothing":                 {subject, "", nil, 1},
		"not closed":              {subject, "[" + a, nil, 1},
		"closed twice":            {subject, "[" + a + "]]", nil, 1},
		"too many":                {subject, "[" + strings.Repeat("0,", 2000) + "0]", nil, 1},
		"as one event":            {run.EventSubject(messages.EventStepStart), "[" + a + "]", nil, 1},
		"of no run":               {"events.*.x.bundle", "[" + a + "]", nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			before := b.Skipped()
			var got []uint64
			for e, text := range b.Each(bus.Message{Subject: tt.subject, Data: []byte(tt.data)}) {
				got = append(got, e.Number())
				if !json.Valid(text) {
					t.Errorf("%s is no JSON", text)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if n := b.Skipped() - before; n != tt.foreign {
				t.Errorf("%d are foreign, want %d", n, tt.foreign)
			}
		})
	}
}

// A page tail has plain messages, and looks at pages for what it has missed.
func TestPageTailOfBundles(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	run := bustest.Run()
	all := stepsOf(run, 5)
	tenant, _ := bustest.OpenOver(t, nc, bus.Config{Pages: func(ctx context.Context, r *control.EventsRequest) (*control.EventPage, error) {
		if err := r.Check(); err != nil {
			return nil, err
		}
		return events.New(b).Page(ctx, r, 1000)
	}})
	got := make(chan []messages.Event, 1)
	begun := make(chan struct{})
	go func() {
		var seen []messages.Event
		for e, err := range events.New(tenant).Watch(bustest.Context(t), run) {
			if err != nil {
				t.Error(err)
				break
			}
			if seen = append(seen, e); len(seen) == 1 {
				close(begun)
			}
		}
		got <- seen
	}()
	bustest.PublishRaw(t, nc, run, all[0])
	<-begun
	out := runlogs.New(b, runlogs.Config{Bundles: true}).Open(run)
	for i := 1; i < len(all)-1; i += 4 {
		out.Publish(bustest.Context(t), uint64(i), slices.Values(all[i:min(i+4, len(all)-1)]))
	}
	if err := out.Finish(bustest.Context(t), all[len(all)-1]); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all, <-got); diff != "" {
		t.Error(diff)
	}
}
