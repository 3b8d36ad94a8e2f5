package strict

import (
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
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
func (d *decoder) members(member func(key string) error) error {
	if d.peek() != '{' {
		return d.mismatch("an object")
	}
	if err := d.open(); err != nil {
		return err
	}
	seen := map[string]struct{}{}
	for first := true; ; first = false {
		if done, err := d.next('}', first); done || err != nil {
			return err
		}
		key, err := d.key(seen)
		if err != nil {
			return err
		}
		if err := member(key); err != nil {
			return err
		}
		d.path = d.path[:len(d.path)-1]
	}
}

// key reads a new key and the colon, and steps into the key.
func (d *decoder) key(seen map[string]struct{}) (string, error) {
	if d.space(); d.peek() != '"' {
		return "", d.invalid()
	}
	key, err := d.text()
	if err != nil {
		return "", err
	}
	d.path = append(d.path, segment{key: &key})
	if _, twice := seen[key]; twice {
		return "", d.fail("given twice")
	}
	seen[key] = struct{}{}
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
		return d.members(func(string) error { return d.skip() })
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

// number reads the text of a number.
func (d *decoder) number() (string, error) {
	start := d.pos
	for isNumber(d.peek()) || d.peek() == '+' || d.peek() == '.' || d.peek()|0x20 == 'e' {
		d.pos++
	}
	n := d.data[start:d.pos]
	if !json.Valid(n) {
		d.pos = start
		return "", d.invalid()
	}
	return string(n), nil
}

// text reads a string.
func (d *decoder) text() (string, error) {
	d.pos++ // the quote
	start := d.pos
	var out []byte // what was read up to start, once there was an escape
	for {
		switch c := d.peek(); {
		case c == '"':
			out = append(out, d.data[start:d.pos]...)
			d.pos++
			if !utf8.Valid(out) { // escapes give whole characters, so they cannot complete a broken one
				return "", d.fail("invalid UTF-8")
			}
			return string(out), nil
		case c < ' ':
			return "", d.invalid()
		case c == '\\':
			out = append(out, d.data[start:d.pos]...)
			r, err := d.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
			start = d.pos
		default:
			d.pos++
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
