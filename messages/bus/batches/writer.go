package batches

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

// ErrLineTaken means that another line of a batch has the same task.
var ErrLineTaken = errors.New("another client is submitting a different line with this custom_id")

// What a BatchWriter has on its way at most.
const (
	writerLines = 128
	writerBytes = 8 << 20
)

// Writer stores lines in order without waiting for each. It belongs to one goroutine. A line that fails ends it:
// nothing is sent again, so that the order of what is stored is the order of the lines.
type Writer struct {
	bus    *bus.Bus
	ref    messages.BatchRef
	in     *bus.Inbox
	prefix string
	next   uint64
	flying map[uint64]writing
	bytes  int
}

type writing struct {
	task string
	body []byte
}

// Write returns a writer; Close it.
func (st *Store) Write(ref messages.BatchRef) (*Writer, error) {
	if err := ref.Check(); err != nil {
		return nil, err
	}
	w := &Writer{bus: st.bus, ref: ref, prefix: st.bus.Conn().NewInbox() + ".", flying: map[uint64]writing{}}
	in, err := bus.OpenInboxAt(st.bus.Conn(), w.prefix+"*", writerLines+1)
	if err != nil {
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	w.in = in
	return w, nil
}

// Add sends a line. The body must not be changed.
func (w *Writer) Add(ctx context.Context, task string, body []byte) error {
	if err := w.bus.CheckSize(body); err != nil {
		return err
	}
	for len(w.flying) >= writerLines || w.bytes > 0 && w.bytes+len(body) > writerBytes {
		if err := w.land(ctx); err != nil {
			return err
		}
	}
	w.next++
	m := &nats.Msg{
		Subject: w.ref.LineSubject(task), Reply: w.prefix + strconv.FormatUint(w.next, 36), Header: nats.Header{}, Data: body,
	}
	bus.Expect(m, 0)
	if err := w.bus.Conn().PublishMsg(m); err != nil {
		return fmt.Errorf("store a line: %w", err)
	}
	w.flying[w.next] = writing{task, body}
	w.bytes += len(body)
	return nil
}

// Flush waits until all is stored.
func (w *Writer) Flush(ctx context.Context) error {
	for len(w.flying) > 0 {
		if err := w.land(ctx); err != nil {
			return err
		}
	}
	return nil
}

// land waits for one acknowledgement.
func (w *Writer) land(ctx context.Context) error {
	m, err := w.in.Next(ctx, w.bus.Budget())
	if err != nil {
		return fmt.Errorf("store lines: %w", err)
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(m.Subject, w.prefix), 36, 64)
	line, ok := w.flying[n]
	if err != nil || !ok {
		return nil //nolint:nilerr // no answer to one of ours
	}
	delete(w.flying, n)
	w.bytes -= len(line.body)
	err = bus.PublishOutcome(m)
	if bus.Refused(err, bus.CodeWrongLast) {
		return w.same(ctx, line)
	}
	if err != nil {
		return fmt.Errorf("store a line: %w", err)
	}
	return nil
}

// same is nil when the line is stored already: a replica may not have known it a moment ago.
func (w *Writer) same(ctx context.Context, line writing) error {
	m, ok, err := w.bus.Stream(bus.StreamBatches).Get(ctx, bus.Lookup{Last: w.ref.LineSubject(line.task)})
	switch {
	case err != nil:
		return err
	case ok && bytes.Equal(m.Data, line.body):
		return nil
	default:
		return ErrLineTaken
	}
}

// Close ends the writer. What was not flushed may or may not be stored.
func (w *Writer) Close() { w.in.Close() }
