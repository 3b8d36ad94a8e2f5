package api

import (
	"slices"
	"strconv"
	"strings"

	"github.com/longshore-run/longshore/dispatcher/contract"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/strict"
)

// formatAGUI is the AG-UI protocol: frames of data alone, as its clients expect them.
const formatAGUI = "ag-ui"

// eventRunError is the name of the event error in a stream. The browser's EventSource calls its own failures error.
const eventRunError = "run_error"

// A stream of a run and those below it has no place at which it could continue. Its last event alone has an id, so that a client that
// comes back with it learns that there is no more.
const (
	eventTreeFinished = "tree_finished"
	treeFinished      = "end"
)

// view is how the events of a run become frames.
type view struct {
	after uint64          // events up to this number are not wanted
	types map[string]bool // that are wanted; empty: all
	live  bool            // live text is wanted
	tree  bool            // the events of the runs below it too
	over  bool            // the client has had all of them
	event func(e *messages.Event) []frame
	delta func(l *messages.Live) []frame
}

// view is what the query asks for.
func (q *query) view(run messages.Ref) (v view, err error) {
	if v.live, err = q.flag("deltas"); err != nil {
		return v, err
	}
	if v.tree, err = q.flag("children"); err != nil {
		return v, err
	}
	format := q.text("format")
	switch {
	case v.tree && (format != "" || v.live):
		return v, &messages.FieldError{Field: "children", Reason: "cannot be combined with format or deltas"}
	case v.tree:
		return v, q.family(&v)
	case format == "":
		return v, q.plain(&v)
	case format != formatAGUI && format != formatKarl:
		return v, &messages.FieldError{Field: "format", Reason: "must be " + formatAGUI + ", " + formatKarl + " or absent"}
	case q.text("types") != "":
		return v, &messages.FieldError{Field: "types", Reason: "cannot be combined with format=" + format}
	}
	if format == formatKarl {
		after, err := q.after()
		mapped := newKarl(wholes{q.r.Context(), q.api.cfg.Runs, run, new(uint64)}, after)
		mapped.args, v.live = v.live, true
		v.event, v.delta = mapped.event, mapped.delta
		return v, err
	}
	field, id := q.lastEventID()
	at, ok := parsePlace(id)
	if !ok {
		return v, &messages.FieldError{Field: field, Reason: "must be the id of a frame of this stream"}
	}
	mapped := newAGUI(run.Run, at) // it reads all events, for it must know what was before
	v.event, v.delta = mapped.event, mapped.delta
	return v, nil
}

// family is our own format of the events of a run and of those below it. Its frames have no ids.
func (q *query) family(v *view) error {
	field, id := q.lastEventID()
	if v.over = id == treeFinished; v.over {
		return nil
	}
	if id != "" {
		return &messages.FieldError{Field: field, Reason: "cannot be combined with children: events have no ids there"}
	}
	if err := q.plain(v); err != nil {
		return err
	}
	event := v.event
	v.event = func(e *messages.Event) []frame {
		frames := event(e)
		for i := range frames {
			frames[i].id = ""
		}
		return frames
	}
	return nil
}

// plain is our own format: each event as it is, live text between them without an id, so that Last-Event-ID stays that of
// the last event.
func (q *query) plain(v *view) error {
	var err error
	if v.after, err = q.after(); err != nil {
		return err
	}
	if v.types, err = eventTypes(q.list("types")); err != nil {
		return err
	}
	failure := eventRunError
	switch {
	case v.types[eventRunError]:
		v.types[messages.EventError] = true
	case v.types[messages.EventError]:
		failure = messages.EventError // its name in releases before; a client that asks for it expects it
	}
	v.event = func(e *messages.Event) []frame {
		name := e.Name()
		if name == messages.EventError {
			name = failure
		}
		return []frame{{e.Sequence, name, record.AppendEvent(nil, e)}}
	}
	v.delta = func(l *messages.Live) []frame { return []frame{{"", eventDelta, l}} }
	return nil
}

// eventTypes are the names of a filter, which must be known.
func eventTypes(names []string) (map[string]bool, error) {
	known := eventNames()
	types := map[string]bool{}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, &messages.FieldError{
				Field: "types", Reason: strict.Clip(strconv.Quote(name), 64) + " is no event; they are " + strings.Join(known, ", "),
			}
		}
		types[name] = true
	}
	return types, nil
}

// eventNames are the events of a run, and what stands for those that are missing.
func eventNames() []string {
	names := append(contract.EventNames(), eventRunError)
	for _, gap := range []string{events.TypeEventsMissing, events.TypeEventsExpired} {
		names = append(names, (&messages.Event{Type: gap}).Name())
	}
	return names
}

// after is the number of the last event that the client has.
func (q *query) after() (uint64, error) {
	field, id := q.lastEventID()
	if id == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(id, 10, 63)
	if err != nil {
		return 0, &messages.FieldError{Field: field, Reason: "must be the number of an event"}
	}
	return n, nil
}

// lastEventID is the id of the last frame that the client has, and where it says so.
func (q *query) lastEventID() (field, id string) {
	if id := q.r.Header.Get("Last-Event-ID"); id != "" {
		return "Last-Event-ID", id
	}
	return "after", q.text("after")
}
