package events

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/control"
)

// Page reads a page of stored events, of so many bytes as JSON at most unless the first message is larger. A bundle counts as one towards the
// limit. The request must have passed its Check.
func (st *Store) Page(ctx context.Context, r *control.EventsRequest, room int) (*control.EventPage, error) {
	p := bus.Page{Seq: r.After + 1, Next: r.Filter(), Batch: r.Limit, Bytes: room}
	if r.Since != nil && r.After == 0 {
		p.Seq, p.Since = 0, bus.StartTime(*r.Since)
	}
	var out control.EventPage
	var first uint64 // running number
	err := st.bus.Retry(ctx, func(ctx context.Context) error {
		out, first = control.EventPage{Events: []control.StoredEvent{}, Next: r.After}, 0
		left := room
		_, pending, whole, err := st.bus.Stream(bus.StreamEvents).ReadPage(ctx, p, func(m bus.Message, err error) bool {
			if err != nil {
				return false
			}
			begin := len(out.Events)
			for e, text := range st.bus.Each(m) {
				if left -= len(text) + eventRoom; left < 0 && begin > 0 { // a bundle is whole or not in it
					out.Events = out.Events[:begin]
					return false
				}
				if len(out.Events) == 0 {
					first = e.Number()
				}
				out.Events = append(out.Events, control.StoredEvent{Seq: m.Seq, Time: m.Time, Event: text})
			}
			out.Next = m.Seq
			return true
		})
		out.More = !whole || pending > 0
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

// eventRoom is for what is around an event in a page, in bytes.
const eventRoom = 100

// beginExpired reports whether the stream has dropped the first event of a run for its age. One that is stored after
// others has not expired.
func (st *Store) beginExpired(ctx context.Context, run messages.Ref) (bool, error) {
	_, stored, err := st.bus.Stream(bus.StreamEvents).Get(ctx, bus.Lookup{Last: run.EventSubject(messages.EventRunQueued)})
	if err != nil || stored {
		return false, err
	}
	return st.eventsExpired(ctx)
}

// eventsExpired reports whether the stream has dropped events for their age.
func (st *Store) eventsExpired(ctx context.Context) (bool, error) {
	var info struct {
		State struct {
			First uint64 `json:"first_seq"`
		} `json:"state"`
	}
	if err := st.bus.Call(ctx, "STREAM.INFO."+bus.StreamEvents, nil, &info); err != nil {
		return false, fmt.Errorf("look at %s: %w", bus.StreamEvents, err)
	}
	return info.State.First > 1, nil
}
