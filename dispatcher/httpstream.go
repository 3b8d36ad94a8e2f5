package dispatcher

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/logentry"
	"github.com/longshore-run/longshore/messages/strict"
)

// serverEvent is one server-sent event.
type serverEvent struct {
	name string
	data []byte // valid until the next one
}

// maxServerEvent bounds one event of a stream, in bytes: an event of a run is far smaller.
const maxServerEvent = 8 << 20

// errCut means that a stream ended before it was over.
var errCut = errors.New("the stream was cut")

// serverEvents reads a stream of server-sent events, as the WHATWG HTML standard has them, to its end.
func serverEvents(body io.Reader) iter.Seq2[serverEvent, error] {
	return func(yield func(serverEvent, error) bool) {
		lines := bufio.NewScanner(body)
		lines.Buffer(make([]byte, 0, 16<<10), maxServerEvent)
		var e serverEvent
		for lines.Scan() {
			line := lines.Bytes()
			field, value, _ := bytes.Cut(line, []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch {
			case len(line) == 0:
				if len(e.data) > 0 && !yield(e, nil) {
					return
				}
				e = serverEvent{data: e.data[:0]}
			case string(field) == "event":
				e.name = string(value)
			case string(field) == "data":
				if len(e.data) > 0 {
					e.data = append(e.data, '\n')
				}
				if e.data = append(e.data, value...); len(e.data) > maxServerEvent {
					yield(serverEvent{}, fmt.Errorf("an event of the stream is longer than %d bytes", maxServerEvent))
					return
				}
			}
		}
		if err := lines.Err(); err != nil {
			yield(serverEvent{}, fmt.Errorf("%w: %w", errCut, err))
		}
	}
}

// Waits between two attempts to follow a stream again.
const (
	followSoon = 100 * time.Millisecond
	followLate = 5 * time.Second
)

// follow reads a stream that can be taken up where it was cut, until each says that it is over, or ctx ends. It comes back
// after cuts, refusals that are for now and silence, without end: how long to wait is the caller's to say.
func (r *remote) follow(ctx context.Context, at func() call, each func(serverEvent) (over bool, err error)) error {
	for wait := followSoon; ; wait = min(2*wait, followLate) {
		got, over, err := r.followOnce(ctx, at(), each)
		if over {
			return err
		}
		if got {
			wait = followSoon
		}
		p, refused := errors.AsType[*messages.Problem](err)
		if refused && p.Status != http.StatusServiceUnavailable && p.Status != http.StatusTooManyRequests {
			return named(err)
		}
		if err := bus.Pause(ctx, wait); err != nil {
			return err
		}
	}
}

// maxSilence is after how much of it a stream is held for cut. The dispatcher says something every 15 s.
const maxSilence = time.Minute

// followOnce reads a stream until it is over or cut.
func (r *remote) followOnce(ctx context.Context, c call, each func(serverEvent) (bool, error)) (got, over bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.method, c.accept = http.MethodGet, "text/event-stream"
	resp, err := r.do(ctx, c)
	if err != nil {
		return false, false, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusNoContent {
		return false, true, nil
	}
	quiet := time.AfterFunc(maxSilence, func() { cancel(errCut) })
	defer quiet.Stop()
	for e, err := range serverEvents(heard{resp.Body, quiet}) {
		if err != nil {
			return got, false, err
		}
		got = true
		if over, err := each(e); over || err != nil {
			return true, true, err
		}
	}
	return got, false, errCut
}

// heard puts a timer back whenever something is read.
type heard struct {
	io.Reader
	quiet *time.Timer
}

// Read implements io.Reader.
func (h heard) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if n > 0 {
		h.quiet.Reset(maxSilence)
	}
	return n, err
}

// errStop ends a stream whose reader wants no more.
var errStop = errors.New("no more is wanted")

// watch yields the events of a run, each once and in order, until run_finished. One that is not
// known is ErrNotFound.
func (r *remote) watch(ctx context.Context, run messages.Ref) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		var last uint64
		at := func() call {
			c := call{path: "/v1/tasks/" + url.PathEscape(run.Run) + "/events", tenant: run.Tenant, query: url.Values{}}
			if last > 0 {
				c.query.Set("after", strconv.FormatUint(last, 10))
			}
			return c
		}
		each := func(s serverEvent) (bool, error) {
			var e messages.Event
			if err := strict.DecodePeer(s.data, &e); err != nil {
				return true, fmt.Errorf("read event after %d: %w", last, err)
			}
			if n := e.Number(); n > last {
				last = n
			} else if n > 0 {
				return false, nil // it came before the cut
			}
			if !yield(e, nil) {
				return true, errStop
			}
			return e.Name() == messages.EventRunFinished, nil
		}
		if err := r.follow(ctx, at, each); err != nil && !errors.Is(err, errStop) {
			yield(messages.Event{}, err)
		}
	}
}

// eventTreeFinished is the last event of a stream of a run and those below it.
const eventTreeFinished = "tree_finished"

// watchTree yields the events of a run and of all below it. A stream that was cut begins again: what was read before is passed over.
func (r *remote) watchTree(ctx context.Context, run messages.Ref) iter.Seq2[messages.Event, error] {
	return func(yield func(messages.Event, error) bool) {
		last := map[string]uint64{} // of each run
		at := func() call {
			return call{
				path: "/v1/tasks/" + url.PathEscape(run.Run) + "/events", tenant: run.Tenant, query: url.Values{"children": {"true"}},
			}
		}
		each := func(s serverEvent) (bool, error) {
			if s.name == eventTreeFinished {
				return true, nil
			}
			var e messages.Event
			if err := strict.DecodePeer(s.data, &e); err != nil {
				return true, fmt.Errorf("read event: %w", err)
			}
			_, known := last[e.Subject]
			if n := e.Number(); known && n <= last[e.Subject] {
				return false, nil // it came before the cut
			} else if known || len(last) <= events.MaxTreeRuns {
				last[e.Subject] = n
			}
			if !yield(e, nil) {
				return true, errStop
			}
			return false, nil
		}
		if err := r.follow(ctx, at, each); err != nil && !errors.Is(err, errStop) {
			yield(messages.Event{}, err)
		}
	}
}

// live yields the text of a run while it is written, until ctx ends.
func (r *remote) live(ctx context.Context, run messages.Ref) iter.Seq2[messages.Live, error] {
	return func(yield func(messages.Live, error) bool) {
		at := func() call {
			return call{
				path: "/v1/tasks/" + url.PathEscape(run.Run) + "/events", tenant: run.Tenant,
				query: url.Values{"deltas": {"true"}, "types": {messages.EventRunFinished}},
			}
		}
		err := r.follow(ctx, at, func(s serverEvent) (bool, error) {
			if s.name != eventDelta {
				return s.name == messages.EventRunFinished, nil
			}
			var l messages.Live
			if err := strict.DecodePeer(s.data, &l); err != nil {
				return true, fmt.Errorf("read live text: %w", err)
			}
			if !yield(l, nil) {
				return true, errStop
			}
			return false, nil
		})
		if err == nil { // the run has ended: nothing follows
			<-ctx.Done()
			err = context.Cause(ctx)
		}
		if !errors.Is(err, errStop) {
			yield(messages.Live{}, err)
		}
	}
}

const (
	eventDelta = "delta" // of a stream of events: live text
	eventLog   = "log"   // of a stream of log entries
)

// logs yields log entries.
func (r *remote) logs(ctx context.Context, run messages.Ref, o LogOptions) iter.Seq2[logentry.StoredLogEntry, error] {
	return func(yield func(logentry.StoredLogEntry, error) bool) {
		at := func() call {
			c := call{path: "/v1/tasks/" + url.PathEscape(run.Run) + "/logs", tenant: run.Tenant, query: url.Values{}}
			set(c.query, "level", string(o.Level))
			if o.After > 0 {
				c.query.Set("after", strconv.FormatUint(o.After, 10))
			}
			return c
		}
		var err error
		if o.Follow {
			err = r.followLogs(ctx, at, &o, yield)
		} else {
			err = r.logPages(ctx, at, &o, yield)
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(logentry.StoredLogEntry{}, err)
		}
	}
}

func (r *remote) followLogs(ctx context.Context, at func() call, o *LogOptions, yield func(logentry.StoredLogEntry, error) bool) error {
	for {
		following := func() call {
			c := at()
			c.query.Set("follow", "true")
			return c
		}
		got, over, err := r.followOnce(ctx, following(), func(s serverEvent) (bool, error) {
			if s.name != eventLog {
				return false, nil
			}
			var e logentry.StoredLogEntry
			if err := strict.DecodePeer(s.data, &e); err != nil {
				return true, fmt.Errorf("read log entry: %w", err)
			}
			if o.After = max(o.After, e.Seq); !yield(e, nil) {
				return true, errStop
			}
			return false, nil
		})
		switch {
		case over, err != nil && !errors.Is(err, errCut):
			return named(err)
		case !got: // the end of the run and a cut look alike: a stream without a new entry is the end
			return nil
		}
	}
}

func (r *remote) logPages(ctx context.Context, at func() call, o *LogOptions, yield func(logentry.StoredLogEntry, error) bool) error {
	for {
		c := at()
		c.method = http.MethodGet
		data, err := r.json(ctx, c)
		if err != nil {
			return named(err)
		}
		var page logentry.LogEntryList
		if err := strict.DecodePeer(data, &page); err != nil {
			return fmt.Errorf("read log entries: %w", err)
		}
		for _, e := range page.Entries {
			if !yield(e, nil) {
				return errStop
			}
		}
		if o.After = page.Next; page.Next == 0 {
			return nil
		}
	}
}
