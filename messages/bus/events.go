package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// EveryEvent matches the events of all runs.
const EveryEvent = "events.>"

// followRoom is for a follower of all events, of which there are few.
const followRoom = 64 << 10

// Events yields the events that are stored now and match a filter of subjects, such as EveryEvent or Ref.EventFilter,
// in the order they were stored: all, or those stored since a time. Of those stored a moment ago the newest may be
// missing. What is not an event of its subject's run is skipped and counted. An error ends it.
func (b *Bus) Events(ctx context.Context, filter string, since time.Time) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		p := page{Seq: 1, Next: filter, Batch: nextPages, Bytes: pageBytes}
		if !since.IsZero() {
			p.Seq, p.Since = 0, startTime(since)
		}
		for m, err := range b.batchFrom(ctx, StreamEvents, p) {
			if err != nil {
				yield(messages.Event{}, fmt.Errorf("read events: %w", err))
				return
			}
			if e, ok := b.event(m); ok && !yield(e, nil) {
				return
			}
		}
	}
}

// Follow yields the events that are stored from now on and match a filter of subjects, in the order they are stored,
// until ctx ends; then its error comes. None is lost while the connection is, up to the age limit of the stream.
func (b *Bus) Follow(ctx context.Context, filter string) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		t := &tail{bus: b, stream: StreamEvents, filter: filter, room: followRoom}
		t.start.DeliverPolicy = jetstream.DeliverNewPolicy
		defer t.close()
		for {
			m, err := t.next(ctx, time.Time{})
			if err != nil {
				yield(messages.Event{}, err)
				return
			}
			if e, ok := b.event(m.stored); ok && !yield(e, nil) {
				return
			}
		}
	}
}

// event reads an event and checks that it is one of the run and the name in its subject; if not, it is counted.
func (b *Bus) event(m stored) (messages.Event, bool) {
	var e messages.Event
	subject := strings.Split(m.subject, ".")
	if len(subject) != 4 || subject[0] != "events" || json.Unmarshal(m.data, &e) != nil || !isOf(&e, messages.Ref{Tenant: subject[1], Run: subject[2]}, subject[3]) {
		b.skipped.Add(1)
		return messages.Event{}, false
	}
	return e, true
}

// isOf reports whether an event is one of a run and has a name.
func isOf(e *messages.Event, run messages.Ref, name string) bool {
	return run.Check() == nil && strict.ValidToken(name) && e.Number() > 0 && e.Source == "/tenants/"+run.Tenant &&
		e.Subject == run.Run && e.Type == "longshore."+name+".v1"
}
