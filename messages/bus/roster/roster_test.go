package roster_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/roster"
)

// follow runs a roster until the test ends and waits until it knows what was announced before.
func follow(t *testing.T, r *roster.Roster) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- r.Run(ctx, func() { close(ready) }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-ready
}

// until waits for what a roster hears by itself.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for ctx := bustest.Context(t); !ok(); {
		if ctx.Err() != nil {
			t.Fatalf("not in time: %s", what)
		}
		time.Sleep(time.Millisecond) // a poll
	}
}

func announce(t *testing.T, b *bus.Bus, w messages.WorkerStatus) {
	t.Helper()
	w.Every = messages.Duration(10 * time.Second)
	if err := roster.New(b).Announce(w); err != nil {
		t.Fatal(err)
	}
}

func idsOf(list []messages.WorkerStatus) (out []string) {
	for _, w := range list {
		out = append(out, w.ID)
	}
	return out
}

func TestRoster(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	announce(t, b, messages.WorkerStatus{ID: "a", Name: "a", Tools: []string{"berth_price"}, Labels: messages.Labels{"gpu": "true"}, Trials: 2})
	announce(t, b, messages.WorkerStatus{ID: "b", Name: "b"})
	announce(t, b, messages.WorkerStatus{ID: "c", Name: "c"})
	if err := nc.Publish("workers.seen.forged", []byte(`{"id":"a","slots":1,"busy":0,"held":0,"since":"2026-01-02T03:04:05Z","gone":true}`)); err != nil {
		t.Fatal(err)
	}
	if err := nc.Publish("workers.seen.x", []byte(`nothing`)); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	r := roster.New(b).NewRoster("c")
	follow(t, r)
	if got := idsOf(r.Live()); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Fatalf("live: %v", got)
	}
	if a := r.Live()[0]; a.Tools[0] != "berth_price" || a.Labels["gpu"] != "true" {
		t.Errorf("it says %+v", a)
	}
	if n, ok := r.Trials("a"); n != 2 || !ok {
		t.Errorf("trials of a: %d, %t", n, ok)
	}
	if _, ok := r.Trials("unknown"); ok {
		t.Error("trials of an unknown worker are known")
	}
	announce(t, b, messages.WorkerStatus{ID: "b", Name: "b", Draining: true})
	until(t, "b drains", func() bool { return slices.Equal(idsOf(r.Live()), []string{"a", "c"}) })
	announce(t, b, messages.WorkerStatus{ID: "b", Name: "b", Gone: true})
	until(t, "b goes", func() bool { r.Ahead(30 * time.Second); n, _ := r.Lost(); return n == 2 })
	if live := r.Live(); len(live) != 0 {
		t.Errorf("silent for 30 s and live: %v", idsOf(live))
	}
	announce(t, b, messages.WorkerStatus{ID: "c", Name: "c"}) // heard by the clock that is ahead
	until(t, "c is back", func() bool { return slices.Equal(idsOf(r.Live()), []string{"c"}) })
	if n, convicted := r.Lost(); n != 1 || convicted {
		t.Errorf("lost: %d, %t, want a alone", n, convicted)
	}
	r.Convict(1)
	if n, convicted := r.Lost(); n != 0 || !convicted || r.Explained() != 1 {
		t.Errorf("after the conviction: %d, %t, %d explained", n, convicted, r.Explained())
	}
	<-r.News()
	r.Ahead(5 * time.Minute)
	if n, convicted := r.Lost(); n != 0 || convicted {
		t.Errorf("long after: %d, %t", n, convicted)
	}

	late := roster.New(b).NewRoster("") // what was stored before is as old as the server says
	late.Ahead(time.Hour)
	follow(t, late)
	if got := idsOf(late.Live()); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("known to one that starts later: %v", got)
	}
}

// Without the stream, of an older dispatcher, workers hear each other all the same.
func TestRosterWithoutItsStream(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	if _, err := nc.Request("$JS.API.STREAM.DELETE."+bus.StreamRoster, nil, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	r := roster.New(b).NewRoster("")
	follow(t, r)
	announce(t, b, messages.WorkerStatus{ID: "a", Name: "a"})
	until(t, "a is heard", func() bool { return len(r.Live()) == 1 })
}
