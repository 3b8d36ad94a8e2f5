package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/httpstream"
)

// How long, after the finish reason, a server may take for each piece of what follows: usage and [DONE].
const afterFinish = 5 * time.Second

// stream reads the answer of one call and hands it on.
type stream struct {
	x     *exchange
	norm  normal
	reply assembly
	yield func(model.Delta, error) bool
}

// errAbandoned means that the consumer left the loop.
var errAbandoned = errors.New("the consumer left")

// read reads up to the end of the reply. It is an error when that does not come.
func (s *stream) read(ctx context.Context) error {
	events, whole, err := s.x.Answer()
	switch {
	case err != nil:
		return s.end(ctx, err)
	case whole != nil:
		return s.whole(whole)
	}
	for {
		ev, err := events.Next()
		switch {
		case err != nil:
			return s.end(ctx, err)
		case string(ev.Data) == "[DONE]":
			return s.rest()
		}
		piece, err := s.norm.chunk(ev)
		if _, half := errors.AsType[*json.SyntaxError](err); half && ev.Last {
			return s.end(ctx, io.ErrUnexpectedEOF) // cut within the line
		}
		if err := s.show(piece, err); err != nil {
			return err
		}
		if s.norm.finished() {
			s.x.Hurry(afterFinish)
		}
	}
}

// whole handles an answer that is no stream: a reply in one piece, an error, or a web page.
func (s *stream) whole(data []byte) error {
	if data[0] == '{' {
		piece, err := s.norm.chunk(httpstream.Event{Data: data})
		if err := s.show(piece, err); err != nil {
			return err
		}
		if s.norm.choices {
			return s.rest()
		}
	}
	f := parseFault(data)
	if data[0] == '{' { // it was not seen to be an error
		f.message = "the answer holds no choice: " + f.message
	}
	e := s.x.failure(f)
	if e.Class == model.Unknown {
		e.Class = model.ModelOutput
	}
	return e
}

// end judges an answer that ended without [DONE]: the reply is complete when it told why it finished.
func (s *stream) end(ctx context.Context, err error) error {
	_, known := errors.AsType[*model.Error](err)
	switch {
	case known:
		return err
	case s.norm.finished() && ctx.Err() == nil:
		return s.rest()
	case errors.Is(err, io.EOF):
		return &model.Error{Class: model.Truncated, Detail: "the stream ended before the reply was complete"}
	default:
		return err
	}
}

// rest shows what was held back until the end of the reply.
func (s *stream) rest() error { return s.show(s.norm.rest()) }

// show hands on what a chunk came to, or gives its error a class.
func (s *stream) show(d delta, err error) error {
	if f, ok := errors.AsType[*fault](err); ok {
		return s.x.failure(*f)
	}
	switch {
	case errors.Is(err, errArguments):
		return &model.Error{Class: model.ReplyTooLarge, Detail: err.Error()}
	case err != nil:
		return &model.Error{Class: model.ModelOutput, Detail: "the answer cannot be read: " + err.Error()}
	}
	calls := s.reply.add(&d)
	if d.ReasoningContent != "" && !s.yield(model.Delta{Reasoning: d.ReasoningContent}, nil) {
		return errAbandoned
	}
	if d.Content != "" && !s.yield(model.Delta{Text: d.Content}, nil) {
		return errAbandoned
	}
	for _, c := range calls {
		if !s.yield(model.Delta{Call: c}, nil) {
			return errAbandoned
		}
	}
	return nil
}
