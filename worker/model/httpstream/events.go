package httpstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/longshore-run/longshore/worker/model"
)

// maxEventName is more than any name that means something.
const maxEventName = 64

// keptBuffer is the largest buffer of an event's data that is kept for the next one.
const keptBuffer = 64 << 10

// Event is one event of a stream.
type Event struct {
	Name string
	Data []byte // without white space around it, never empty; valid until the next event
	Last bool   // the stream ended with it, without a blank line
}

// Events reads server-sent events in bounded memory. Events without data are left out: they are keepalives.
type Events struct {
	lines   lines
	max     int // bytes of an event
	lenient bool

	name    string
	data    []byte // of an event of several lines
	taken   bool   // data has been handed out
	bare    bool   // data came without "data:", and so will the rest of it
	known   bool   // an event's field has been seen
	strange string // the beginning of the first line that is no field, until one is seen
}

// Next returns the next event; io.EOF at the end of a stream. It is an *model.Error when a line or an event is too large,
// or when the answer has ended and was no event stream.
func (s *Events) Next() (Event, error) {
	if s.taken {
		if s.data, s.taken = s.data[:0], false; cap(s.data) > keptBuffer {
			s.data = nil
		}
	}
	for {
		line, err := s.lines.next()
		end := errors.Is(err, io.EOF)
		switch {
		case errors.Is(err, errLongLine):
			return Event{}, tooLarge("a line of the answer", int64(s.max))
		case err != nil && !end:
			return Event{}, err
		case len(line) == 0 && len(s.data) > 0:
			s.taken = true
			return s.event(bytes.TrimSpace(s.data), end), nil
		case end && s.strange != "":
			return Event{}, &model.Error{Class: model.ModelOutput, Detail: "the answer is not an event stream: " + s.strange}
		case end:
			return Event{}, io.EOF
		case len(line) == 0:
			s.name = ""
			continue
		}
		value, ok := s.field(line)
		if !ok {
			continue
		}
		if len(s.data) == 0 && s.whole(value) {
			return s.event(value, false), nil
		}
		if len(s.data)+len(value) >= s.max {
			return Event{}, tooLarge("an event of the answer", int64(s.max))
		}
		s.data = append(append(s.data, value...), '\n')
	}
}

func (s *Events) event(data []byte, last bool) Event {
	ev := Event{Name: s.name, Data: data, Last: last}
	s.name, s.bare = "", false
	return ev
}

// whole reports whether the data of a line is all of its event.
func (s *Events) whole(data []byte) bool {
	return s.lines.blankFollows() || s.lenient && (string(data) == "[DONE]" || json.Valid(data))
}

// field returns the data of a line, if it holds some.
func (s *Events) field(line []byte) ([]byte, bool) {
	if s.lenient && (s.bare || line[0] == '{') {
		s.bare, s.known, s.strange = true, true, ""
		return line, true
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimSpace(value)
	switch string(name) {
	case "data":
		s.known, s.strange = true, ""
		return value, len(value) > 0 && value[0] != ':' // a ping, or a comment that a gateway has wrapped once more
	case "event":
		s.known, s.strange = true, ""
		s.name = string(value[:min(len(value), maxEventName)])
	case "", "id", "retry":
	default:
		cut := bytes.HasPrefix([]byte("data"), line) || bytes.HasPrefix([]byte("event"), line) // of a field, by the end of the stream
		if !s.known && s.strange == "" && !cut {
			s.strange = string(line[:min(len(line), MaxDetail)])
		}
	}
	return nil, false
}
