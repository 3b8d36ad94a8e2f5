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
// in the order they were stored, in several streams that of each run: all, or those stored since a time. Of those stored a moment ago the newest may be
// missing. Those of a bundle match a filter that the bundle matches. What is not an event of its subject's run is skipped and counted. An
// error ends it.
func (st *Store) Events(ctx context.Context, filter string, since time.Time) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		p := bus.Page{Seq: 1, Next: filter, Batch: bus.NextPages, Bytes: bus.PageBytes}
		if !since.IsZero() {
			p.Seq, p.Since = 0, bus.StartTime(since)
		}
		for _, name := range st.in(filter) {
			for m, err := range st.bus.Stream(name).ScanPages(ctx, p) {
				if err != nil {
					yield(messages.Event{}, fmt.Errorf("read events: %w", err))
					return
				}
				for e := range st.eachOf(name, m) {
					if !yield(e, nil) {
						return
					}
				}
			}
		}
	}
}

// eachOf is [bus.Bus.Each] of a message of a stream: none of one that is in the wrong stream.
func (st *Store) eachOf(stream string, m bus.Message) iter.Seq2[messages.Event, []byte] {
	if st.bus.Partitions(bus.StreamEvents).OwnsSubject(stream, m.Subject) {
		return st.bus.Each(m)
	}
	st.bus.Foreign()
	return func(func(messages.Event, []byte) bool) {}
}

// Follow yields the events that are stored from now on and match a filter of subjects, in the order they are stored,
// until ctx ends; then its error comes. None is lost while the connection is, up to the age limit of the stream.
func (st *Store) Follow(ctx context.Context, filter string) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		tail := bus.Tail{Filter: filter, Room: bus.FollowRoom}
		tail.Start.DeliverPolicy = jetstream.DeliverNewPolicy
		t := st.across(tail, nil)
		defer t.Close()
		for {
			m, err := t.Next(ctx, time.Time{})
			if err != nil {
				yield(messages.Event{}, err)
				return
			}
			for e := range st.eachOf(t.tails[m.stream].Stream, m.Message) {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}
