package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/wire"
)

// event is one message of an event stream.
type event struct {
	name string
	data []byte // valid until the next event
	last bool   // the stream ended with it, without a blank line
}

// events splits a stream into events. It is more lenient than the specification where servers are known to break it:
// a data line that is JSON by itself is an event without waiting for a blank line, and so is JSON without "data:".
type events struct {
	lines   wire.Lines
	maxLine int

	name    string
	data    []byte // of an event of several lines
	bare    bool   // data came without "data:", and so will the rest of it
	known   bool   // a field has been seen
	strange string // the beginning of the first line that is no field, until one is seen
}

// next returns io.EOF at the end.
func (s *events) next() (event, error) {
	for {
		line, err := s.readLine()
		end := errors.Is(err, io.EOF)
		if err != nil && !end {
			return event{}, err
		}
		if len(line) == 0 {
			if len(s.data) > 0 {
				return s.take(end), nil
			}
			if s.name = ""; end {
				return event{}, io.EOF
			}
			continue
		}
		value, ok := s.field(line)
		if !ok {
			continue
		}
		if len(s.data) == 0 && complete(value) {
			ev := event{name: s.name, data: value}
			s.name, s.bare = "", false
			return ev, nil
		}
		if len(s.data)+len(value) >= s.maxLine {
			return event{}, tooLong(s.maxLine)
		}
		s.data = append(append(s.data, value...), '\n')
	}
}

// take hands out the event of several lines. Its buffer is given away, so that a large one does not stay.
func (s *events) take(last bool) event {
	ev := event{name: s.name, data: bytes.TrimSpace(s.data), last: last}
	s.name, s.data, s.bare = "", nil, false
	return ev
}

// field returns the data of a line, if it holds some.
func (s *events) field(line []byte) ([]byte, bool) {
	if s.bare || line[0] == '{' {
		s.bare, s.known, s.strange = true, true, ""
		return line, true
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimSpace(value)
	switch string(name) {
	case "data":
		s.known, s.strange = true, ""
		// Empty data is a ping, and a colon a keepalive comment that a gateway has wrapped once more.
		return value, len(value) > 0 && value[0] != ':'
	case "event":
		s.known, s.strange = true, ""
		s.name = string(value[:min(len(value), maxEventName)])
	case "", "id", "retry":
	default:
		if !s.known && s.strange == "" && !bytes.HasPrefix([]byte("data"), line) { // else it is the beginning of a field
			s.strange = messages.Clip(string(line[:min(len(line), wire.MaxDetail)]), wire.MaxDetail)
		}
	}
	return nil, false
}

const maxEventName = 64

// complete tells whether data is an event by itself.
func complete(data []byte) bool { return string(data) == "[DONE]" || json.Valid(data) }

// readLine returns a line without its end, also the last one that has none; then io.EOF.
func (s *events) readLine() ([]byte, error) {
	line, err := s.lines.Next()
	if errors.Is(err, wire.ErrLongLine) {
		return nil, tooLong(s.maxLine)
	}
	return line, err
}

func tooLong(limit int) error {
	return &model.Error{Class: model.ReplyTooLarge, Detail: fmt.Sprintf("a line of the answer is longer than %d bytes", limit)}
}
