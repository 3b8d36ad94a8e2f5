package events

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/control"
)

// Page reads a page of stored events, of so many bytes as JSON at most unless the first message is larger. A bundle counts as one towards the
// limit. The request must have passed its Check. Where events are in several streams, a page of a tenant has some of each.
func (st *Store) Page(ctx context.Context, r *control.EventsRequest, room int) (*control.EventPage, error) {
	if r.ID == "" && st.Streams() > 1 {
		return st.pageAcross(ctx, r, room)
	}
	if r.Position != "" {
		return nil, &messages.FieldError{Field: "position", Reason: "is for the events of a tenant in several streams: continue with after here"}
	}
	stream := st.in(r.Filter())[0]
	p := bus.Page{Seq: r.After + 1, Next: r.Filter(), Batch: r.Limit, Bytes: room}
	if r.Since != nil && r.After == 0 {
		p.Seq, p.Since = 0, bus.StartTime(*r.Since)
	}
	var out control.EventPage
	var first uint64 // running number
	err := st.bus.Retry(ctx, func(ctx context.Context) error {
		out, first = control.EventPage{Events: []control.StoredEvent{}, Next: r.After}, 0
		last, more, err := st.readPage(ctx, stream, p, room, &out.Events)
		out.Next, out.More = max(out.Next, last), more
		if len(out.Events) > 0 {
			first = numberOf(out.Events[0])
		}
		return err
	})
	if err == nil && r.After == 0 && r.ID != "" && first > 1 {
		out.Expired, err = st.beginExpired(ctx, messages.Ref{Tenant: r.Tenant, Run: r.ID})
	}
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	return &out, nil
}

// readPage adds the events of a page of one stream, of so many bytes at most unless the first message is larger and there is nothing yet. It
// returns the sequence of the last message, or 0, and whether more follow.
func (st *Store) readPage(ctx context.Context, stream string, p bus.Page, room int, out *[]control.StoredEvent) (last uint64, more bool, err error) {
	_, pending, whole, err := st.bus.Stream(stream).ReadPage(ctx, p, func(m bus.Message, err error) bool {
		if err != nil {
			return false
		}
		begin := len(*out)
		for _, text := range st.eachOf(stream, m) {
			if room -= len(text) + eventRoom; room < 0 && begin > 0 { // a bundle is whole or not in it
				*out = (*out)[:begin]
				return false
			}
			*out = append(*out, control.StoredEvent{Seq: m.Seq, Time: m.Time, Event: text})
		}
		last = m.Seq
		return true
	})
	return last, !whole || pending > 0, err
}

// numberOf is the running number of a stored event.
func numberOf(s control.StoredEvent) uint64 {
	var e messages.Event
	_ = json.Unmarshal(s.Event, &e) // it was read before
	return e.Number()
}

// pageAcross is Page of a tenant whose events are in several streams. Each gives its share, so that none waits for another, and another one
// begins each time, so that a large message comes too.
func (st *Store) pageAcross(ctx context.Context, r *control.EventsRequest, room int) (*control.EventPage, error) {
	names := st.bus.Partitions(bus.StreamEvents).Names()
	at, err := ParsePosition(r.Position, len(names))
	switch {
	case err != nil:
		return nil, &messages.FieldError{Field: "position", Reason: err.Error()}
	case r.After > 0:
		reason := fmt.Sprintf("is a place in one stream, but events are in %d: continue with the position of the page before", len(names))
		return nil, &messages.FieldError{Field: "after", Reason: reason}
	}
	at = at.Max(make(Position, len(names)))
	out := control.EventPage{Events: []control.StoredEvent{}}
	begin, left, share := int(at.Sum()%uint64(len(names))), room, room/len(names)
	for n := range names {
		i := (begin + n) % len(names)
		p := bus.Page{Seq: at[i] + 1, Next: r.Filter(), Batch: max(1, r.Limit/len(names)), Bytes: room}
		if r.Since != nil && at[i] == 0 {
			p.Seq, p.Since = 0, bus.StartTime(*r.Since)
		}
		before := len(out.Events)
		var last uint64
		var more bool
		err := st.bus.Retry(ctx, func(ctx context.Context) (err error) {
			out.Events = out.Events[:before]
			last, more, err = st.readPage(ctx, names[i], p, min(left, share), &out.Events)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		for _, e := range out.Events[before:] {
			left -= len(e.Event) + eventRoom
		}
		at[i] = max(at[i], last)
		if out.More = out.More || more; len(out.Events) >= r.Limit {
			out.More = out.More || n < len(names)-1
			break
		}
	}
	out.Position = at.String()
	return &out, nil
}

// eventRoom is for what is around an event in a page, in bytes.
const eventRoom = 100

// beginExpired reports whether the stream has dropped the first event of a run for its age. One that is stored after
// others has not expired.
func (st *Store) beginExpired(ctx context.Context, run messages.Ref) (bool, error) {
	_, stored, err := st.of(run).Get(ctx, bus.Lookup{Last: run.EventSubject(messages.EventRunQueued)})
	if err != nil || stored {
		return false, err
	}
	return st.eventsExpired(ctx, run)
}

// eventsExpired reports whether the stream of a run has dropped events for their age.
func (st *Store) eventsExpired(ctx context.Context, run messages.Ref) (bool, error) {
	name := st.bus.Partitions(bus.StreamEvents).NameOf(run)
	var info struct {
		State struct {
			First uint64 `json:"first_seq"`
		} `json:"state"`
	}
	if err := st.bus.Call(ctx, "STREAM.INFO."+name, nil, &info); err != nil {
		return false, fmt.Errorf("look at %s: %w", name, err)
	}
	return info.State.First > 1, nil
}
