package events

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

// Events yields the events that are stored now and match a filter of subjects, such as EveryEvent or Ref.EventFilter,
// in the order they were stored: all, or those stored since a time. Of those stored a moment ago the newest may be
// missing. Those of a bundle match a filter that the bundle matches. What is not an event of its subject's run is skipped and counted. An
// error ends it.
func (st *Store) Events(ctx context.Context, filter string, since time.Time) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		p := bus.Page{Seq: 1, Next: filter, Batch: bus.NextPages, Bytes: bus.PageBytes}
		if !since.IsZero() {
			p.Seq, p.Since = 0, bus.StartTime(since)
		}
		for m, err := range st.bus.Stream(bus.StreamEvents).ScanPages(ctx, p) {
			if err != nil {
				yield(messages.Event{}, fmt.Errorf("read events: %w", err))
				return
			}
			for e := range st.bus.Each(m) {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// Follow yields the events that are stored from now on and match a filter of subjects, in the order they are stored,
// until ctx ends; then its error comes. None is lost while the connection is, up to the age limit of the stream.
func (st *Store) Follow(ctx context.Context, filter string) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		t := &bus.Tail{Bus: st.bus, Stream: bus.StreamEvents, Filter: filter, Room: bus.FollowRoom}
		t.Start.DeliverPolicy = jetstream.DeliverNewPolicy
		defer t.Close()
		for {
			m, err := t.Next(ctx, time.Time{})
			if err != nil {
				yield(messages.Event{}, err)
				return
			}
			for e := range st.bus.Each(m.Message) {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}
