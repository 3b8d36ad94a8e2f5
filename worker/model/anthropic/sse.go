package anthropic

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/longshore-run/longshore/worker/model/wire"
)

const bom = "\xef\xbb\xbf"

// maxEventName is more than any name that means something.
const maxEventName = 64

// events splits a stream into events, in bounded memory.
type events struct {
	lines   wire.Lines
	maxLine int

	name    string
	data    []byte // of the event that is being read; valid until the next
	known   bool   // a field or comment has been seen
	strange string // the beginning of the first line that is no field
}

// next returns an event's name and data, without end whitespace. The last event may lack its blank line; ended tells
// so. After it comes io.EOF.
func (s *events) next() (name string, data []byte, ended bool, err error) {
	s.name, s.data = "", s.data[:0]
	for {
		line, err := s.readLine()
		ended = errors.Is(err, io.EOF)
		switch {
		case err != nil && !ended:
			return "", nil, false, err
		case len(line) == 0 && len(s.data) > 0:
			return s.name, bytes.TrimSpace(s.data), ended, nil
		case ended && len(line) == 0:
			return "", nil, true, io.EOF
		case len(line) == 0:
			s.name = ""
			continue
		}
		if err := s.field(line); err != nil {
			return "", nil, false, err
		}
	}
}

func (s *events) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimSpace(value)
	switch string(name) {
	case "data":
		s.known = true
		if len(value) == 0 || value[0] == ':' { // a ping, or a comment that a gateway has wrapped once more
			return nil
		}
		if len(s.data)+len(value) >= s.maxLine {
			return tooLarge("an event of the answer", int64(s.maxLine))
		}
		if len(s.data) > 0 {
			s.data = append(s.data, '\n')
		}
		s.data = append(s.data, value...)
	case "event":
		s.known = true
		s.name = string(value[:min(len(value), maxEventName)])
	case "", "id", "retry":
		s.known = true
	default:
		if s.strange == "" && !bytes.HasPrefix([]byte("event"), line) && !bytes.HasPrefix([]byte("data"), line) { // or it was cut
			s.strange = string(line[:min(len(line), wire.MaxDetail)])
		}
	}
	return nil
}

// readLine returns a line without its end, also the last one that has none; then io.EOF.
func (s *events) readLine() ([]byte, error) {
	line, err := s.lines.Next()
	if errors.Is(err, wire.ErrLongLine) {
		return nil, tooLarge("a line of the answer", int64(s.maxLine))
	}
	return line, err
}

// firstByte skips a byte order mark and white space.
func firstByte(r *bufio.Reader) (byte, error) {
	if c, err := r.Peek(1); err == nil && c[0] == bom[0] {
		if start, err := r.Peek(len(bom)); err == nil && string(start) == bom {
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
