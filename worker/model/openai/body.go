package openai

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/wire"
)

// How long, after the finish reason, a server may take for each piece of what follows: usage and [DONE].
const afterFinish = 5 * time.Second

// Bounds of the wait for the end of a complete answer: a connection is used again only after its end.
const (
	drainTime  = 250 * time.Millisecond
	drainBytes = 64 << 10
)

// body is a reply in canonical form: events of one data line each, and [DONE] only after a reply that is complete.
// It reads no further ahead than its reader.
type body struct {
	ctx      context.Context //nolint:containedctx // of the request whose body this is, as in net/http
	layer    *normaliser
	x        *exchange
	upstream io.ReadCloser
	dog      *watchdog
	cancel   context.CancelCauseFunc

	read   int64         // bytes of upstream
	wait   time.Duration // for the next piece
	src    *bufio.Reader
	events *events
	norm   normal
	out    []byte
	err    error // after out
}

func newBody(
	ctx context.Context, n *normaliser, x *exchange, upstream io.ReadCloser, dog *watchdog, cancel context.CancelCauseFunc,
) *body {
	b := &body{ctx: ctx, layer: n, x: x, upstream: upstream, dog: dog, cancel: cancel, norm: normal{x: x, marks: marks{tools: x.edit.tools}}}
	b.src = bufio.NewReader(readerFunc(b.pull))
	return b
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	for len(b.out) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		b.fill()
	}
	n := copy(p, b.out)
	b.out = b.out[n:]
	return n, nil
}

// Close implements io.Closer. It waits up to 250 ms for the end of a complete reply.
func (b *body) Close() error {
	if b.x.done {
		b.dog.arm(drainTime, errDrained)
		_, _ = io.CopyN(io.Discard, b.upstream, drainBytes) // the reply is complete already
	}
	b.dog.stop()
	err := b.upstream.Close()
	b.cancel(nil)
	return err
}

// pull reads from the network, within the bounds.
func (b *body) pull(p []byte) (int, error) {
	if b.read >= b.layer.maxReply {
		return 0, b.tooLarge("the reply", b.layer.maxReply)
	}
	b.wait = b.layer.idleTimeout
	switch {
	case b.read == 0: // servers send headers at once, and then read the prompt
		b.wait = max(b.wait, b.layer.startTimeout-time.Since(b.x.sent))
	case b.norm.finished():
		b.wait = min(b.wait, afterFinish)
	}
	b.dog.arm(b.wait, errIdle)
	n, err := b.upstream.Read(p[:min(int64(len(p)), b.layer.maxReply-b.read)])
	b.dog.stop()
	b.read += int64(n)
	return n, err
}

// fill makes the next output or the end.
func (b *body) fill() {
	if b.events == nil {
		if b.begin(); b.events == nil {
			return
		}
	}
	ev, err := b.events.next()
	switch {
	case errors.Is(err, io.EOF):
		b.end(nil)
	case err != nil:
		b.end(err)
	case string(ev.data) == "[DONE]":
		b.complete()
	default:
		chunk, err := b.norm.chunk(ev)
		var bad *json.SyntaxError
		if errors.As(err, &bad) && ev.last {
			b.end(io.ErrUnexpectedEOF) // cut within the line
			return
		}
		b.emit(chunk, err)
	}
}

// begin looks at the first byte, since headers cannot be trusted to say what comes.
func (b *body) begin() {
	first, err := firstByte(b.src)
	switch {
	case err != nil:
		b.end(ignoreEOF(err))
	case first == '{' || first == '[' || first == '<':
		whole, err := io.ReadAll(io.LimitReader(b.src, int64(b.layer.maxLine)+1))
		switch {
		case err != nil:
			b.end(err)
		case len(whole) > b.layer.maxLine:
			b.err = b.tooLarge("the reply", int64(b.layer.maxLine))
		case cutJSON(whole):
			b.end(io.ErrUnexpectedEOF)
		default:
			b.whole(whole)
		}
	default:
		b.events = &events{lines: wire.Lines{Source: b.src, Max: b.layer.maxLine}, maxLine: b.layer.maxLine}
	}
}

// cutJSON reports whether data is the beginning of a JSON value and lacks its end.
func cutJSON(data []byte) bool {
	err := json.NewDecoder(bytes.NewReader(data)).Decode(new(json.RawMessage))
	return errors.Is(err, io.ErrUnexpectedEOF)
}

// whole handles an answer that is no stream: a reply in one piece, an error, or a web page.
func (b *body) whole(data []byte) {
	if data[0] == '{' {
		chunk, err := b.norm.chunk(event{data: data})
		if b.emit(chunk, err); b.err == nil && b.norm.choices {
			b.complete()
		}
		if b.err != nil || b.norm.choices {
			return
		}
	}
	f := parseFault(data)
	if data[0] == '{' { // it was not seen to be an error
		f.message = "the answer holds no choice: " + f.message
	}
	e := b.layer.failure(b.x, f)
	if e.Class == model.Unknown {
		e.Class = model.ModelOutput
	}
	b.err = e
}

func (b *body) emit(chunk []byte, err error) {
	var f *fault
	switch {
	case errors.As(err, &f):
		b.err = b.layer.failure(b.x, *f)
	case errors.Is(err, errArguments):
		b.err = b.failed(model.ReplyTooLarge, err.Error())
	case err != nil:
		b.err = b.failed(model.ModelOutput, "the answer cannot be read: "+err.Error())
	case chunk != nil:
		b.out = fmt.Appendf(b.out, "data: %s\n\n", chunk)
	}
}

// end judges a stream that ended without [DONE]: it is complete when it told why it finished.
func (b *body) end(err error) {
	var known *model.Error
	switch {
	case errors.As(err, &known):
		b.err = known
	case b.norm.finished() && (b.ctx.Err() == nil || errors.Is(context.Cause(b.ctx), errIdle)):
		b.complete()
	case errors.Is(context.Cause(b.ctx), errIdle):
		b.err = b.failed(model.Timeout, "nothing came for "+b.wait.Round(time.Millisecond).String())
	case b.ctx.Err() != nil:
		b.err = context.Cause(b.ctx)
	case err == nil && b.events != nil && b.events.strange != "":
		b.err = b.failed(model.ModelOutput, "the answer is no event stream: "+b.events.strange)
	case err == nil:
		b.err = b.failed(model.Truncated, "the stream ended before the reply was complete")
	default:
		b.err = b.failed(model.Truncated, "the stream was cut: "+err.Error())
	}
}

func (b *body) complete() {
	if b.emit(b.norm.rest()); b.err != nil {
		return
	}
	b.x.done = true
	b.out = append(b.out, "data: [DONE]\n\n"...)
	b.err = io.EOF
}

func (b *body) failed(class model.Class, detail string) error {
	return &model.Error{
		Class: class, Status: b.x.status, Detail: b.layer.secrets.Clean(detail), RequestID: b.x.requestID,
	}
}

func (b *body) tooLarge(what string, limit int64) error {
	return b.failed(model.ReplyTooLarge, fmt.Sprintf("%s is larger than %d bytes", what, limit))
}

// firstByte skips a byte order mark and white space.
func firstByte(r *bufio.Reader) (byte, error) {
	bom := []byte("\xef\xbb\xbf")
	if c, err := r.Peek(1); err == nil && c[0] == bom[0] {
		if start, err := r.Peek(len(bom)); err == nil && bytes.Equal(start, bom) {
			_, _ = r.Discard(len(bom)) // just peeked at
		}
	}
	for {
		c, err := r.ReadByte()
		if err != nil {
			return 0, err
		}
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c, r.UnreadByte()
		}
	}
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
