package messages

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// How deep arrays and objects may be nested. Whatever wraps a task, as a record does, must still be readable.
const (
	maxDepth     = 64
	maxTaskDepth = 32
)

// Sizes of what an error shows of the input, in bytes.
const (
	maxShown = 64  // one key or value
	maxPath  = 256 // the whole path of a field
)

// wholeBody is what Decode calls the whole input.
const wholeBody = "body"

// Decode reads one JSON value strictly into v, a pointer to a value of a type as in this package. The error is a
// *FieldError; v may then hold a part of the input.
//
// An error is what encoding/json lets pass: an unknown field, a field in other case, a key given twice (in free JSON
// too), invalid UTF-8, half a surrogate pair, data after the value, a number that does not fit, and null. Null is
// allowed only where the encoder writes it for our own types, so that whatever we wrote can be read again: inside
// free JSON (any, json.RawMessage), and as the zero value of a pointer, slice, map or raw field that has no omitempty.
func Decode(data []byte, v any) error { return decodeNamed(wholeBody, data, v) }

// DecodePeer reads what another version of Longshore answers or tells: a reply or an event. It is Decode, but ignores the
// fields that v does not have, for a newer peer may say more. Types that read themselves, as Records, stay strict.
func DecodePeer(data []byte, v any) error {
	return (&decoder{data: data, name: wholeBody, limit: maxDepth, newer: true}).decode(v)
}

// decodeNamed is Decode with a name for the whole input, which stands in an error when no field can.
func decodeNamed(name string, data []byte, v any) error {
	return (&decoder{data: data, name: name, limit: maxDepth}).decode(v)
}

// under puts the field of an error from Decode below another.
func under(path string, err error) error {
	fe, ok := asFieldError(err)
	if !ok {
		return err
	}
	rest, whole := strings.CutPrefix(fe.Field, wholeBody)
	switch {
	case !whole || rest != "" && rest[0] != '[':
		path += "." + fe.Field
	default:
		path += rest
	}
	return &FieldError{Clip(path, maxPath), fe.Reason}
}

func asFieldError(err error) (*FieldError, bool) {
	return errors.AsType[*FieldError](err)
}

// checkText refuses text of more than limit bytes and text that not every consumer could store.
func checkText(field, s string, limit int) error {
	switch {
	case len(s) > limit:
		return &FieldError{field, fmt.Sprintf("larger than %d bytes", limit)}
	case !utf8.ValidString(s):
		return &FieldError{field, "invalid UTF-8"}
	case strings.IndexByte(s, 0) >= 0:
		return &FieldError{field, "holds a NUL character"}
	}
	return nil
}

// shown is s as an error may show it: short, on one line and printable.
func shown(s string) string {
	if len(s) > maxShown {
		s = s[:cutAt(s, maxShown)] + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}
