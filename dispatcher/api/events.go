package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// writeTimeout is how long a client may take to receive one event.
const writeTimeout = 15 * time.Second

// watchTask streams a run's events: what was, then what comes, until the run has ended.
func watchTask(w http.ResponseWriter, q *query) error {
	run, err := q.run()
	if err != nil {
		return err
	}
	after, err := q.after()
	if err != nil {
		return err
	}
	types := map[string]bool{}
	for _, name := range q.list("types") {
		types[name] = true
	}
	live, err := q.flag("deltas")
	if err != nil {
		return err
	}
	var mapped *agui
	switch format := q.text("format"); {
	case format == formatAGUI && len(types) > 0:
		return &messages.FieldError{Field: "types", Reason: "does not go with format=" + formatAGUI}
	case format == formatAGUI:
		mapped = newAGUI(run.Run)
	case format != "":
		return &messages.FieldError{Field: "format", Reason: "must be " + formatAGUI + " or absent"}
	}
	lookup, cancel := context.WithTimeout(q.r.Context(), requestTimeout)
	_, err = q.api.cfg.Client.Status(lookup, run) // a stream of a run that nobody knows would be silent for ever
	cancel()
	if err != nil {
		return err
	}
	ctx, stop := q.api.untilDrain(q.r.Context())
	defer stop()
	var pieces <-chan messages.Live
	if live { // before what is stored is read, so that nothing is between the two
		var leave func()
		pieces, leave = q.api.deltas.watch(ctx, run)
		defer leave()
	}
	s := startStream(w, q.api.cfg.KeepAlive)
	events, ended := make(chan messages.Event), make(chan error, 1)
	var forwarding sync.WaitGroup
	from := after
	if mapped != nil { // it must know what was before
		from = 0
	}
	forwarding.Go(func() { ended <- q.api.forward(ctx, run, from, types, events) })
	defer forwarding.Wait()
	defer stop()
	carry(ctx, s, events, pieces, ended, func(e messages.Event) error {
		if mapped != nil {
			return s.mapped(e.Sequence, mapped.event(&e), e.Number() <= after)
		}
		return s.event(e.Sequence, e.Name(), e.AppendJSON(nil))
	}, func(l messages.Live) error {
		if mapped != nil {
			return s.mapped("", mapped.delta(&l), false)
		}
		return s.delta(&l)
	})
	return nil
}

// forward hands on the events of a run that were asked for.
func (a *API) forward(ctx context.Context, run messages.Ref, after uint64, types map[string]bool, to chan<- messages.Event) error {
	for e, err := range a.cfg.Hub.Watch(ctx, run) {
		if err != nil {
			return err
		}
		if e.Number() <= after || len(types) > 0 && !types[e.Name()] {
			continue
		}
		select {
		case to <- e:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// after is the number of the last event that the client has.
func (q *query) after() (uint64, error) {
	name, v := "Last-Event-ID", q.r.Header.Get("Last-Event-ID")
	if v == "" {
		name, v = "after", q.text("after")
	}
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(v, 10, 63)
	if err != nil {
		return 0, &messages.FieldError{Field: name, Reason: "must be the number of an event"}
	}
	return n, nil
}

// stream writes server-sent events.
type stream struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	every time.Duration
	quiet *time.Timer // fires when nothing was written for a while
}

// carry writes items, and pieces of text between them, as they come: until there are no more, or they cannot be written.
func carry[T any](
	ctx context.Context, s *stream, items <-chan T, pieces <-chan messages.Live, ended <-chan error,
	item func(T) error, piece func(messages.Live) error,
) {
	for {
		var err error
		select {
		case i := <-items:
			err = item(i)
		case p := <-pieces:
			err = piece(p)
		case err := <-ended:
			if err != nil && !errors.Is(err, errDraining) && ctx.Err() == nil {
				_ = s.comment("error: the stream is cut: come back with Last-Event-ID")
			}
			return
		case <-s.quiet.C:
			err = s.comment("keep-alive")
		}
		if err != nil {
			return
		}
	}
}

func startStream(w http.ResponseWriter, every time.Duration) *stream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	s := &stream{w, http.NewResponseController(w), every, time.NewTimer(every)}
	_ = s.comment("longshore")
	return s
}

func (s *stream) event(id, name string, data []byte) error {
	return s.write(fmt.Appendf(nil, "id: %s\nevent: %s\ndata: %s\n\n", id, name, data))
}

// formatAGUI is the AG-UI protocol: frames of data alone, as its clients expect them.
const formatAGUI = "ag-ui"

// mapped writes what became of an event, in one piece, with the event's number at the last frame: who comes back after it
// lacks nothing.
func (s *stream) mapped(id string, events []aguiEvent, known bool) error {
	if len(events) == 0 || known {
		return nil
	}
	var out []byte
	for i, e := range events {
		data, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("encode event: %w", err)
		}
		if id != "" && i == len(events)-1 {
			out = fmt.Appendf(out, "id: %s\n", id)
		}
		out = fmt.Appendf(out, "data: %s\n\n", data)
	}
	return s.write(out)
}

// delta writes live text, which has no id: Last-Event-ID stays that of the last event.
func (s *stream) delta(l *messages.Live) error {
	data, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("encode live text: %w", err)
	}
	return s.write(fmt.Appendf(nil, "event: %s\ndata: %s\n\n", eventDelta, data))
}

func (s *stream) comment(text string) error { return s.write([]byte(": " + text + "\n\n")) }

func (s *stream) write(b []byte) error {
	s.quiet.Reset(s.every)
	if err := s.rc.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("write to a stream: %w", err)
	}
	if _, err := s.w.Write(b); err != nil {
		return fmt.Errorf("write to a stream: %w", err)
	}
	if err := s.rc.Flush(); err != nil {
		return fmt.Errorf("write to a stream: %w", err)
	}
	return nil
}
