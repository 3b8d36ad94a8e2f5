package strict

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/longshore-run/longshore/messages/jsonscan"
)

// space skips white space.
func (d *decoder) space() {
	for d.pos < len(d.data) {
		switch d.data[d.pos] {
		case ' ', '\t', '\r', '\n':
			d.pos++
		default:
			return
		}
	}
}

// peek is the next byte, 0 at the end.
func (d *decoder) peek() byte {
	if d.pos == len(d.data) {
		return 0
	}
	return d.data[d.pos]
}

// invalid is the error of a next byte that cannot stand there.
func (d *decoder) invalid() error {
	if d.pos >= len(d.data) {
		return d.fail("not valid JSON: it ends too early")
	}
	return d.fail("not valid JSON at byte %d", d.pos)
}

func (d *decoder) expect(c byte) error {
	if d.space(); d.peek() != c {
		return d.invalid()
	}
	d.pos++
	return nil
}

func (d *decoder) literal(s string) error {
	for i := range len(s) {
		if d.peek() != s[i] {
			return d.invalid()
		}
		d.pos++
	}
	return nil
}

// open and its end guard the depth.
func (d *decoder) open() error {
	d.pos++
	if d.depth++; d.depth > d.limit {
		return d.fail("nested deeper than %d", d.limit)
	}
	return nil
}

// members reads an object. It calls member for each key with the decoder before the value.
func (d *decoder) members(member func(key []byte) error) error {
	if d.peek() != '{' {
		return d.mismatch("an object")
	}
	if err := d.open(); err != nil {
		return err
	}
	seen := seenKeys{from: len(d.keys)}
	for first := true; ; first = false {
		if done, err := d.next('}', first); done || err != nil {
			d.keys = d.keys[:seen.from]
			return err
		}
		key, err := d.key(&seen)
		if err != nil {
			return err
		}
		if err := member(key); err != nil {
			return err
		}
		d.path = d.path[:len(d.path)-1]
	}
}

// fewKeys is up to how many keys of an object are compared one by one: that takes less time than a map.
const fewKeys = 24

// seenKeys are the keys of an object so far: those of the decoder's keys from an index on and, of an object with many, a map.
type seenKeys struct {
	from int
	many map[string]struct{}
}

// add adds a key, and reports whether it is there already.
func (s *seenKeys) add(d *decoder, key []byte) (twice bool) {
	if s.many != nil {
		_, twice = s.many[string(key)]
		s.many[string(key)] = struct{}{}
		return twice
	}
	for _, k := range d.keys[s.from:] {
		if bytes.Equal(k, key) {
			return true
		}
	}
	d.keys = append(d.keys, key)
	if own := d.keys[s.from:]; len(own) > fewKeys {
		s.many = make(map[string]struct{}, 2*len(own))
		for _, k := range own {
			s.many[string(k)] = struct{}{}
		}
	}
	return false
}

// key reads a new key and the colon, and steps into the key.
func (d *decoder) key(seen *seenKeys) ([]byte, error) {
	if d.space(); d.peek() != '"' {
		return nil, d.invalid()
	}
	key, err := d.text()
	if err != nil {
		return nil, err
	}
	d.path = append(d.path, segment{key: key})
	if seen.add(d, key) {
		return nil, d.fail("given twice")
	}
	return key, d.expect(':')
}

// elements reads an array. It calls element for each with the decoder before the value.
func (d *decoder) elements(element func(i int) error) error {
	if d.peek() != '[' {
		return d.mismatch("an array")
	}
	if err := d.open(); err != nil {
		return err
	}
	for i := 0; ; i++ {
		if done, err := d.next(']', i == 0); done || err != nil {
			return err
		}
		d.path = append(d.path, segment{index: i})
		if err := element(i); err != nil {
			return err
		}
		d.path = d.path[:len(d.path)-1]
	}
}

// next reads what stands before a member or element: the end, or a comma unless it is the first.
func (d *decoder) next(end byte, first bool) (done bool, err error) {
	d.space()
	switch {
	case d.peek() == end:
		d.pos++
		d.depth--
		return true, nil
	case first:
		return false, nil
	default:
		return false, d.expect(',')
	}
}

// skip checks a value of any type and keeps nothing of it.
func (d *decoder) skip() error {
	d.space()
	switch c := d.peek(); {
	case c == '{':
		return d.members(func([]byte) error { return d.skip() })
	case c == '[':
		return d.elements(func(int) error { return d.skip() })
	case c == '"':
		_, err := d.text()
		return err
	case c == 't':
		return d.literal("true")
	case c == 'f':
		return d.literal("false")
	case c == 'n':
		return d.literal("null")
	case isNumber(c):
		_, err := d.number()
		return err
	default:
		return d.invalid()
	}
}

func isNumber(c byte) bool { return c == '-' || '0' <= c && c <= '9' }

// number reads the text of a number. It is a part of the input.
func (d *decoder) number() ([]byte, error) {
	end, ok := jsonscan.Number(d.data, d.pos)
	if ok && end < len(d.data) {
		c := d.data[end]
		ok = !isNumber(c) && c != '+' && c != '.' && c|0x20 != 'e'
	}
	if !ok {
		return nil, d.invalid() // at its beginning
	}
	n := d.data[d.pos:end]
	d.pos = end
	return n, nil
}

// text reads a string. What it returns is a part of the input if nothing in it is escaped, and never nil.
func (d *decoder) text() ([]byte, error) {
	d.pos++ // the quote
	start := d.pos
	var out []byte // what was read up to start, once there was an escape
	for {
		d.pos = jsonscan.Plain(d.data, d.pos)
		read := d.data[start:d.pos]
		if out != nil {
			out = append(out, read...)
			read = out
		}
		switch d.peek() {
		case '"':
			d.pos++
			if !utf8.Valid(read) { // escapes give whole characters, so they cannot complete a broken one
				return nil, d.fail("invalid UTF-8")
			}
			return read, nil
		case '\\':
			r, err := d.escape()
			if err != nil {
				return nil, err
			}
			if out == nil {
				out = slices.Clip(read) // the input stays as it is
			}
			out = utf8.AppendRune(out, r)
			start = d.pos
		default:
			return nil, d.invalid()
		}
	}
}

// escape reads one escaped character.
func (d *decoder) escape() (rune, error) {
	d.pos++ // the backslash
	c := d.peek()
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		return d.unicode()
	default:
		return 0, d.invalid()
	}
	d.pos++
	return rune(c), nil
}

// unicode reads uXXXX, or the two of a surrogate pair.
func (d *decoder) unicode() (rune, error) {
	r, err := d.hex()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	if d.peek() == '\\' && d.pos+1 < len(d.data) && d.data[d.pos+1] == 'u' {
		d.pos++
		low, err := d.hex()
		if err != nil {
			return 0, err
		}
		if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
			return r, nil
		}
	}
	return 0, d.fail("invalid Unicode: half of a surrogate pair")
}

// hex reads uXXXX.
func (d *decoder) hex() (rune, error) {
	const size = len("uXXXX")
	if len(d.data)-d.pos < size {
		d.pos = len(d.data)
		return 0, d.invalid()
	}
	n, err := strconv.ParseUint(string(d.data[d.pos+1:d.pos+size]), 16, 16)
	if err != nil {
		return 0, d.invalid()
	}
	d.pos += size
	return rune(n), nil
}
