// Package jsonscan passes over JSON in memory and makes nothing of it: [Valid] checks it, [Members] finds what an object has. It is for
// readers of many messages that need a few short fields of each. It accepts what encoding/json accepts, and keeps nothing of its input.
// [github.com/longshore-run/longshore/messages/strict] is for what others write; it reads texts and numbers with [Plain] and [Number]. It links only the
// standard library.
package jsonscan

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
)

// maxDepth is how deep arrays and objects may be nested, as in encoding/json.
const maxDepth = 10_000

// ErrNotAnObject means that what was to be an object is none, or is not valid JSON.
var ErrNotAnObject = errors.New("not a JSON object")

// Valid reports what json.Valid reports, in a fraction of its time.
func Valid(data []byte) bool {
	end, ok := value(data, space(data, 0), 0)
	return ok && space(data, end) == len(data)
}

// Members calls a function with each member of an object, in their order, until it returns an error. A name stands between its quotes as it
// is written: one that has an escape is not decoded. A value is as it is written, too; both are parts of data. A later member may have the name of an
// earlier one. What is wrong behind a member is found after the call.
func Members(data []byte, each func(name, value []byte) error) error {
	i := space(data, 0)
	if !is(data, i, '{') {
		return ErrNotAnObject
	}
	end, ok, err := members(data, i, 0, each)
	switch {
	case err != nil:
		return err
	case !ok || space(data, end) != len(data):
		return ErrNotAnObject
	default:
		return nil
	}
}

// The functions below read what begins at i, and return where it ends.

func value(data []byte, i, depth int) (end int, ok bool) {
	if i >= len(data) {
		return i, false
	}
	switch c := data[i]; c {
	case '"':
		return text(data, i+1)
	case '{':
		end, ok, _ = members(data, i, depth, nil)
		return end, ok
	case '[':
		return elements(data, i, depth)
	case 't':
		return literal(data, i, "true")
	case 'f':
		return literal(data, i, "false")
	case 'n':
		return literal(data, i, "null")
	default:
		return Number(data, i)
	}
}

// members reads an object. It calls a function with each member, unless that is nil.
func members(data []byte, i, depth int, each func(name, value []byte) error) (end int, ok bool, err error) {
	if depth == maxDepth {
		return i, false, nil
	}
	if i = space(data, i+1); is(data, i, '}') {
		return i + 1, true, nil
	}
	for {
		if !is(data, i, '"') {
			return i, false, nil
		}
		begin := i + 1
		if i, ok = text(data, begin); !ok {
			return i, false, nil
		}
		name := data[begin : i-1]
		if i = space(data, i); !is(data, i, ':') {
			return i, false, nil
		}
		begin = space(data, i+1)
		if i, ok = value(data, begin, depth+1); !ok {
			return i, false, nil
		}
		if each != nil {
			if err := each(name, data[begin:i]); err != nil {
				return i, false, err
			}
		}
		if i = space(data, i); is(data, i, '}') {
			return i + 1, true, nil
		}
		if !is(data, i, ',') {
			return i, false, nil
		}
		i = space(data, i+1)
	}
}

func elements(data []byte, i, depth int) (end int, ok bool) {
	if depth == maxDepth {
		return i, false
	}
	if i = space(data, i+1); is(data, i, ']') {
		return i + 1, true
	}
	for {
		if i, ok = value(data, i, depth+1); !ok {
			return i, false
		}
		if i = space(data, i); is(data, i, ']') {
			return i + 1, true
		}
		if !is(data, i, ',') {
			return i, false
		}
		i = space(data, i+1)
	}
}

// text reads a string from behind its first quote.
func text(data []byte, i int) (end int, ok bool) {
	for i = Plain(data, i); i < len(data); i = Plain(data, i) {
		switch data[i] {
		case '"':
			return i + 1, true
		case '\\':
			if i, ok = escape(data, i+1); !ok {
				return i, false
			}
		default: // a control character
			return i, false
		}
	}
	return i, false
}

// Plain returns the place of the next quote, backslash or control character from i on, or the end. It looks at eight bytes at a time.
func Plain(data []byte, i int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(data); i += 8 {
		w := binary.LittleEndian.Uint64(data[i:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		if found := ((w-ones*' ')&^w | (quote-ones)&^quote | (slash-ones)&^slash) & tops; found != 0 {
			return i + bits.TrailingZeros64(found)/8 // the lowest is never a false one
		}
	}
	for ; i < len(data); i++ {
		if c := data[i]; c < ' ' || c == '"' || c == '\\' {
			return i
		}
	}
	return i
}

// escape reads what follows a backslash.
func escape(data []byte, i int) (end int, ok bool) {
	if i >= len(data) {
		return i, false
	}
	switch data[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1, true
	case 'u':
		for n := 1; n <= 4; n++ {
			if i+n >= len(data) || !isHex(data[i+n]) {
				return i, false
			}
		}
		return i + 5, true
	default:
		return i, false
	}
}

// Number returns where the number ends that begins at i. If there is none, ok is false and end is where it breaks off.
func Number(data []byte, i int) (end int, ok bool) {
	if is(data, i, '-') {
		i++
	}
	if is(data, i, '0') {
		i++
	} else if i, ok = digits(data, i); !ok {
		return i, false
	}
	if is(data, i, '.') {
		if i, ok = digits(data, i+1); !ok {
			return i, false
		}
	}
	if is(data, i, 'e') || is(data, i, 'E') {
		if i++; is(data, i, '+') || is(data, i, '-') {
			i++
		}
		return digits(data, i)
	}
	return i, true
}

// digits reads one or more.
func digits(data []byte, i int) (end int, ok bool) {
	for begin := i; ; i++ {
		if i >= len(data) || data[i] < '0' || data[i] > '9' {
			return i, i > begin
		}
	}
}

func literal(data []byte, i int, s string) (end int, ok bool) {
	return i + len(s), bytes.HasPrefix(data[i:], []byte(s))
}

func space(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\n' || data[i] == '\r' || data[i] == '\t') {
		i++
	}
	return i
}

func is(data []byte, i int, c byte) bool { return i < len(data) && data[i] == c }

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}
