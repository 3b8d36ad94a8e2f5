package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/events"
)

// writeTimeout is how long a client may take to receive one event.
const writeTimeout = 15 * time.Second

// watchTask streams a run's events: what was, then what comes, until the run has ended. When it has ended and there is
// nothing for the client, the answer is 204: an EventSource then stops asking.
func watchTask(w http.ResponseWriter, q *query) error {
	run, err := q.run()
	if err != nil {
		return err
	}
	v, err := q.view(run)
	if err != nil {
		return err
	}
	if v.over {
		newStream(w, q.api.cfg.KeepAlive).finish()
		return nil
	}
	lookup, cancel := context.WithTimeout(q.r.Context(), requestTimeout)
	status, err := q.api.cfg.Client.Status(lookup, run) // the stream of an unknown run would be silent forever
	cancel()
	if err != nil {
		return err
	}
	ctx, stop := q.api.untilDrain(q.r.Context())
	defer stop()
	var pieces <-chan messages.Live
	if v.live { // before what is stored is read, so that nothing is between the two
		var leave func()
		pieces, leave = q.api.deltas.watch(ctx, run)
		defer leave()
	}
	s := newStream(w, q.api.cfg.KeepAlive)
	if !status.Status.Ended() {
		s.start()
	}
	watched := q.api.cfg.Hub.Watch(ctx, run)
	if v.tree {
		watched = events.Tree{Watch: q.api.cfg.Hub.Watch, Over: q.api.cfg.Client.Runs().Over}.Events(ctx, run)
	}
	heard, ended := make(chan messages.Event), make(chan error, 1)
	var forwarding sync.WaitGroup
	forwarding.Go(func() { ended <- forward(ctx, watched, v.after, v.types, heard) })
	defer forwarding.Wait()
	defer stop()
	if carry(ctx, s, heard, pieces, ended,
		func(e messages.Event) error { return s.frames(v.event(&e)) },
		func(l messages.Live) error { return s.frames(v.delta(&l)) }) {
		if v.tree {
			return s.frames([]frame{{treeFinished, eventTreeFinished, struct {
				Run string `json:"run"`
			}{run.Run}}})
		}
		s.finish()
	}
	return nil
}

// forward hands on the events that were asked for.
func forward(
	ctx context.Context, watched iter.Seq2[messages.Event, error], after uint64, types map[string]bool, to chan<- messages.Event,
) error {
	for e, err := range watched {
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

// stream writes server-sent events.
type stream struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	every time.Duration
	quiet *time.Timer // fires when nothing was written for a while
	begun bool        // the status was sent
}

// carry writes items, and pieces of text between them, as they come: until there are no more, or they cannot be written.
// It reports whether all were written.
func carry[T any](
	ctx context.Context, s *stream, items <-chan T, pieces <-chan messages.Live, ended <-chan error,
	item func(T) error, piece func(messages.Live) error,
) (all bool) {
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
			return err == nil
		case <-s.quiet.C:
			err = s.comment("keep-alive")
		}
		if err != nil {
			return false
		}
	}
}

// newStream is a stream that begins with the first thing that is written.
func newStream(w http.ResponseWriter, every time.Duration) *stream {
	return &stream{w: w, rc: http.NewResponseController(w), every: every, quiet: time.NewTimer(every)}
}

func startStream(w http.ResponseWriter, every time.Duration) *stream {
	s := newStream(w, every)
	s.start()
	return s
}

func (s *stream) start() { _ = s.comment("longshore") }

// finish ends a stream that had nothing to say, and never will.
func (s *stream) finish() {
	if !s.begun {
		s.w.Header().Set("Cache-Control", "no-store")
		s.w.WriteHeader(http.StatusNoContent)
	}
}

// frame is one server-sent event.
type frame struct {
	id, name string // empty: it has none
	data     any    // bytes as they are; else as JSON
}

// frames writes what one event maps to, in one piece.
func (s *stream) frames(frames []frame) error {
	var out []byte
	for _, f := range frames {
		data, ok := f.data.([]byte)
		if !ok {
			var err error
			if data, err = json.Marshal(f.data); err != nil {
				return fmt.Errorf("encode event: %w", err)
			}
		}
		if f.id != "" {
			out = fmt.Appendf(out, "id: %s\n", f.id)
		}
		if f.name != "" {
			out = fmt.Appendf(out, "event: %s\n", f.name)
		}
		out = fmt.Appendf(out, "data: %s\n\n", data)
	}
	if len(out) == 0 {
		return nil
	}
	return s.write(out)
}

func (s *stream) event(id, name string, data []byte) error {
	return s.frames([]frame{{id, name, data}})
}

func (s *stream) comment(text string) error { return s.write([]byte(": " + text + "\n\n")) }

func (s *stream) write(b []byte) error {
	if s.quiet.Reset(s.every); !s.begun {
		s.begun = true
		h := s.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no")
		s.w.WriteHeader(http.StatusOK)
	}
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
