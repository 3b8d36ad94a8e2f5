package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// ErrLongLine means that a line is longer than Lines takes.
var ErrLongLine = errors.New("a line is too long")

// Lines splits an event stream into lines, in bounded memory. A line ends with LF, CR LF or CR alone, and is given as soon as
// its end has come: what follows a CR is not waited for.
type Lines struct {
	Source *bufio.Reader
	Max    int // bytes of a line

	line []byte // longer than the source's buffer
	cr   bool   // the last line ended with CR: an LF that follows belongs to it
}

// Next returns a line without its end, also the last one that has none; then io.EOF. The line is valid until the next call.
func (l *Lines) Next() ([]byte, error) {
	l.line = l.line[:0]
	for {
		if _, err := l.Source.Peek(1); err != nil {
			if errors.Is(err, io.EOF) && len(l.line) > 0 {
				return l.line, nil
			}
			return nil, err
		}
		buffered, _ := l.Source.Peek(l.Source.Buffered()) // no more than there is
		if l.cr {
			if l.cr = false; buffered[0] == '\n' {
				l.discard(1)
				continue
			}
		}
		end := lineEnd(buffered)
		part := buffered
		if end >= 0 {
			part = buffered[:end]
		}
		if len(l.line)+len(part) > l.Max {
			return nil, ErrLongLine
		}
		if end < 0 {
			l.line = append(l.line, part...)
			l.discard(len(part))
			continue
		}
		l.cr = buffered[end] == '\r'
		l.discard(end + 1)
		if len(l.line) == 0 {
			return part, nil // discarding moves nothing
		}
		l.line = append(l.line, part...)
		return l.line, nil
	}
}

func (l *Lines) discard(n int) { _, _ = l.Source.Discard(n) } // it is buffered

// lineEnd is where the first line ends; below 0: not here.
func lineEnd(b []byte) int {
	end := bytes.IndexByte(b, '\n')
	if end >= 0 {
		b = b[:end]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return end
}
