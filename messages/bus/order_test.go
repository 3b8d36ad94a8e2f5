package bus_test

import (
	"context"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// outOfOrder are the events of a run as they may be stored after a restart of the server.
func outOfOrder(all []messages.Event) map[string][]messages.Event {
	backwards := slices.Clone(all)
	slices.Reverse(backwards)
	last := len(all) - 1
	return map[string][]messages.Event{"backwards": backwards, "the end first": append([]messages.Event{all[last]}, all[:last]...)}
}

// A watcher of a run sees its events by their numbers, however they were stored, before or while it watches.
func TestWatchersOfEventsStoredOutOfOrder(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	h, _ := openHub(t, b)
	for name, from := range map[string]func(context.Context, messages.Ref) iter.Seq2[messages.Event, error]{
		"bus": events.New(b).Watch, "hub": h.Watch,
	} {
		for _, order := range []string{"backwards", "the end first"} {
			for _, before := range []bool{true, false} {
				run := messages.Ref{Tenant: "acme", Run: messages.NewID(time.Now())}
				all := append(bustest.Events(run, 1, 300), bustest.Event(run, 301, messages.EventRunFinished)) // more than a page of a hub
				stored := outOfOrder(all)[order]
				if before {
					bustest.PublishRaw(t, nc, run, stored...)
				} else {
					bustest.PublishRaw(t, nc, run, stored[:150]...)
				}
				got := make(chan []messages.Event, 1)
				go func() {
					var seen []messages.Event
					for e, err := range from(bustest.Context(t), run) {
						if err != nil {
							t.Error(err)
							break
						}
						seen = append(seen, e)
					}
					got <- seen
				}()
				if !before {
					bustest.PublishRaw(t, nc, run, stored[150:]...)
				}
				if diff := cmp.Diff(all, <-got); diff != "" {
					t.Errorf("%s, %s, stored before: %t: %s", name, order, before, strict.Clip(diff, 2000))
				}
			}
		}
	}
}

// A page that begins with another event than the first does not say that the first has expired while it is stored.
func TestEventPageOfEventsStoredOutOfOrder(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	bustest.PublishRaw(t, nc, messages.Ref{Tenant: "acme", Run: "older"}, bustest.Event(messages.Ref{Tenant: "acme", Run: "older"}, 1, messages.EventRunQueued))
	run := bustest.Run()
	all := append([]messages.Event{bustest.Event(run, 1, messages.EventRunQueued)}, append(bustest.Events(run, 2, 5), bustest.Event(run, 6, messages.EventRunFinished))...)
	bustest.PublishRaw(t, nc, run, outOfOrder(all)["backwards"]...)
	s, err := bustest.NewJetStream(t, nc).Stream(bustest.Context(t), bustest.EventsIn(b, bustest.Run()))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		keep    uint64 // the first message that is kept
		expired bool
	}{{2, false}, {8, true}} {
		if step.expired { // the first event of the run goes last: it is stored anew as a newer one
			bustest.PublishRaw(t, nc, run, all[5])
		}
		if err := s.Purge(bustest.Context(t), jetstream.WithPurgeSequence(step.keep)); err != nil {
			t.Fatal(err)
		}
		r := control.EventsRequest{Tenant: run.Tenant, ID: run.Run}
		if err := r.Check(); err != nil {
			t.Fatal(err)
		}
		page, err := events.New(b).Page(bustest.Context(t), &r, 512<<10)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Events) == 0 || page.Expired != step.expired {
			t.Errorf("kept from %d: expired is %t of %d events", step.keep, page.Expired, len(page.Events))
		}
	}
}
