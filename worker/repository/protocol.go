package repository

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/longshore-run/longshore/worker/repository/pack"
)

// Lines of the protocol begin with their length in four hexadecimal digits, which counts too. Lengths below that are marks.
const (
	lengthDigits = 4
	flush        = 0 // ends a message
	delimiter    = 1 // between the parts of a message
)

// lineReader reads lines of the protocol.
type lineReader struct {
	in  io.Reader
	buf []byte
}

// next is a line without its length, until the next call; or a mark, and no line.
func (r *lineReader) next() (line []byte, mark int, err error) {
	var head [lengthDigits]byte
	if _, err := io.ReadFull(r.in, head[:]); err != nil {
		return nil, 0, ended(err)
	}
	n, err := strconv.ParseUint(string(head[:]), 16, 16)
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("%w: a line begins with %q", pack.ErrMalformed, head[:])
	case n == flush || n == delimiter:
		return nil, int(n), nil
	case n < lengthDigits:
		return nil, 0, fmt.Errorf("%w: a line has the length %d", pack.ErrMalformed, n)
	}
	if n -= lengthDigits; uint64(cap(r.buf)) < n {
		r.buf = make([]byte, n)
	}
	line = r.buf[:n]
	if _, err := io.ReadFull(r.in, line); err != nil {
		return nil, 0, ended(err)
	}
	if text, ok := bytes.CutPrefix(line, []byte("ERR ")); ok {
		return nil, 0, &saidError{string(bytes.TrimSpace(text))}
	}
	return line, -1, nil
}

func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// saidError is what a server says in place of an answer.
type saidError struct{ text string }

func (e *saidError) Error() string { return "the server refuses" }

// offer is what a server can.
type offer struct{ format bool } // it wants to be told the format of hashes

// readOffer reads what a server says that it can. It must speak version 2 of the protocol, in which any commit can be asked for and no
// list of branches is sent first.
func readOffer(r *lineReader) (*offer, error) {
	o, version, shallow, flushes := &offer{}, false, false, 0
	for {
		line, mark, err := r.next()
		if errors.Is(err, pack.ErrMalformed) || errors.Is(err, pack.ErrTooLarge) {
			return nil, wrongURL("the server does not answer as a git server does")
		}
		if err != nil {
			return nil, err
		}
		text := strings.TrimSpace(string(line))
		switch name, values, _ := strings.Cut(text, "="); {
		case mark == flush && !version && flushes == 0: // after the name of the service
			flushes++
		case mark == flush && shallow:
			return o, nil
		case mark >= 0:
			return nil, tooOld()
		case text == "version 2":
			version = true
		case !version && strings.HasPrefix(text, "# service="):
		case !version:
			return nil, tooOld()
		case name == "fetch":
			shallow = strings.Contains(" "+values+" ", " shallow ")
		case name == "object-format":
			if o.format = true; values != "sha1" {
				return nil, wrongURL("the repository has hashes that are not SHA-1, and cannot be fetched")
			}
		}
	}
}

func tooOld() error {
	return wrongURL("the server does not speak version 2 of git's protocol with commits alone, as git 2.18 and newer do")
}

// request asks for a commit without the ones before it.
func request(id pack.ID, can *offer, agent string) []byte {
	var b bytes.Buffer
	line := func(text string) { _, _ = fmt.Fprintf(&b, "%04x%s\n", len(text)+lengthDigits+1, text) }
	line("command=fetch")
	line("agent=" + agent)
	if can.format {
		line("object-format=sha1")
	}
	_, _ = fmt.Fprintf(&b, "%04x", delimiter)
	line("no-progress")
	line("ofs-delta")
	line("deepen 1")
	line("want " + id.String())
	line("done")
	_, _ = fmt.Fprintf(&b, "%04x", flush)
	return b.Bytes()
}

// begin reads to the pack, and returns it.
func begin(r *lineReader) (io.Reader, error) {
	for {
		line, _, err := r.next()
		if err != nil {
			return nil, err
		}
		if string(bytes.TrimSpace(line)) == "packfile" {
			return &band{lines: r}, nil
		}
	}
}

// Bands of a line of a pack: its first byte.
const (
	bandPack     = 1
	bandProgress = 2
	bandError    = 3
)

// band is the pack in the lines of an answer.
type band struct {
	lines *lineReader
	rest  []byte
}

func (b *band) Read(p []byte) (int, error) {
	for len(b.rest) == 0 {
		line, mark, err := b.lines.next()
		switch {
		case err != nil:
			return 0, err
		case mark >= 0:
			return 0, io.EOF
		case len(line) == 0:
			return 0, fmt.Errorf("%w: a line is empty", pack.ErrMalformed)
		case line[0] == bandPack:
			b.rest = line[1:]
		case line[0] == bandProgress:
		case line[0] == bandError:
			return 0, passing("the server broke off")
		default:
			return 0, fmt.Errorf("%w: a line is of the band %d", pack.ErrMalformed, line[0])
		}
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}
