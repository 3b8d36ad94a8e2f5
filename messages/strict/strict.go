package strict

// MaxDepth is how deep arrays and objects may be nested.
const MaxDepth = 64

// Sizes of what an error shows of the input, in bytes.
const (
	MaxShown = 64  // one key or value
	MaxPath  = 256 // the whole path of a field
)

// Body is what Decode calls the whole input.
const Body = "body"

// Decode reads one JSON value strictly into v, a pointer to a value of a type as in package messages. The error is a
// *FieldError; v may then hold a part of the input.
//
// An error is what encoding/json lets pass: an unknown field, a field in other case, a key given twice (in free JSON
// too), invalid UTF-8, half a surrogate pair, data after the value, a number that does not fit, and null. Null is
// allowed only where the encoder writes it for our own types, so that whatever we wrote can be read again: inside
// free JSON (any, json.RawMessage), and as the zero value of a pointer, slice, map or raw field that has no omitempty.
func Decode(data []byte, v any) error { return DecodeDepth(Body, MaxDepth, data, v) }

// DecodePeer reads what another version of Longshore answers or tells: a reply or an event. It is Decode, but ignores the
// fields that v does not have, for a newer peer may say more. Types that read themselves, as Records, stay strict.
func DecodePeer(data []byte, v any) error {
	return (&decoder{data: data, name: Body, limit: MaxDepth, newer: true}).decode(v)
}

// DecodeDepth is Decode with a name for the whole input, which stands in an error when no field can, and a limit of its own
// to how deep arrays and objects may be nested.
func DecodeDepth(name string, depth int, data []byte, v any) error {
	return (&decoder{data: data, name: name, limit: depth}).decode(v)
}

// Mismatch is the error of one JSON value that is not what is wanted, such as "a string or an array".
func Mismatch(data []byte, want string) error {
	return (&decoder{data: data, name: Body, limit: MaxDepth}).mismatch(want)
}
