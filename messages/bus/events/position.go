package events

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Position is up to where EVENTS was read: for each of its streams the sequence of the last message. The empty Position is before the first.
type Position []uint64

// ParsePosition reads what String has written, of so many streams. An empty text is the empty Position.
func ParsePosition(text string, streams int) (Position, error) {
	if text == "" {
		return nil, nil
	}
	var p Position
	for part := range strings.SplitSeq(text, ".") {
		seq, err := strconv.ParseUint(part, 10, 63)
		if err != nil {
			return nil, fmt.Errorf("%q is not a position in EVENTS, such as 17 or 17.4.0.22", text)
		}
		p = append(p, seq)
	}
	return p, p.Fits(streams)
}

// Fits refuses a position in EVENTS while it was another number of streams. The empty one fits any.
func (p Position) Fits(streams int) error {
	if len(p) > 0 && len(p) != streams {
		return fmt.Errorf("the position %s is one in %d streams of events, but there are %d: the events were divided anew since", p, len(p), streams)
	}
	return nil
}

// String is such as 17, or 17.4.0.22 in several streams.
func (p Position) String() string {
	var b []byte
	for i, seq := range p {
		if i > 0 {
			b = append(b, '.')
		}
		b = strconv.AppendUint(b, seq, 10)
	}
	return string(b)
}

// At is the sequence in the stream of a number.
func (p Position) At(stream int) uint64 {
	if stream >= len(p) {
		return 0
	}
	return p[stream]
}

// Sum is one number that grows with each message that is read. Of a single stream it is the sequence.
func (p Position) Sum() (n uint64) {
	for _, seq := range p {
		n += seq
	}
	return n
}

// Reaches reports whether all that is stored up to another position has been read.
func (p Position) Reaches(other Position) bool {
	for i, seq := range other {
		if p.At(i) < seq {
			return false
		}
	}
	return true
}

// Max is the position that reaches both.
func (p Position) Max(other Position) Position {
	out := slices.Clone(p)
	for i, seq := range other {
		if i == len(out) {
			out = append(out, 0)
		}
		out[i] = max(out[i], seq)
	}
	return out
}

// Behind is how many messages are between this position and one that was stored, at most.
func (p Position) Behind(stored Position) (n uint64) {
	for i, seq := range stored {
		n += seq - min(p.At(i), seq)
	}
	return n
}
