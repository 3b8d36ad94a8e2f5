package httpstream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// errLongLine means that a line is longer than lines takes.
var errLongLine = errors.New("a line is too long")

// lines splits an event stream into lines, in bounded memory. A line ends with LF, CR LF or CR alone, and is given as soon as
// its end has come: what follows a CR is not waited for.
type lines struct {
	source *bufio.Reader
	max    int // bytes of a line

	line []byte // longer than the source's buffer
	cr   bool   // the last line ended with CR: an LF that follows belongs to it
}

// next returns a line without its end, also the last one that has none; then io.EOF. The line is valid until the next call.
func (l *lines) next() ([]byte, error) {
	l.line = l.line[:0]
	for {
		if _, err := l.source.Peek(1); err != nil {
			if errors.Is(err, io.EOF) && len(l.line) > 0 {
				return l.line, nil
			}
			return nil, err
		}
		buffered, _ := l.source.Peek(l.source.Buffered()) // no more than there is
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
		if len(l.line)+len(part) > l.max {
			return nil, errLongLine
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

func (l *lines) discard(n int) { _, _ = l.source.Discard(n) } // it is buffered

// blankFollows reports whether a blank line comes next, as far as that is known without waiting.
func (l *lines) blankFollows() bool {
	buffered, _ := l.source.Peek(l.source.Buffered()) // no more than there is
	if l.cr {
		buffered = bytes.TrimPrefix(buffered, []byte("\n")) // of the line before
	}
	return len(buffered) > 0 && (buffered[0] == '\n' || buffered[0] == '\r')
}

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
