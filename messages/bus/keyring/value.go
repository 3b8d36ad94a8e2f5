package keyring

import (
	"encoding/binary"

	"github.com/longshore-run/longshore/messages/bus"
)

// Prefix begins every sealed value.
const Prefix = bus.SealedPrefix

// Sealed reports whether a value is sealed.
func Sealed(value []byte) bool { return bus.IsSealed(value) }

// What tink puts before what a key encrypts: a byte that says that the key's id follows.
const (
	tinkStart  = 1
	tinkPrefix = 5
)

// keyOf is the id of the key that encrypted what tink returned.
func keyOf(text []byte) (uint32, bool) {
	if len(text) <= tinkPrefix || text[0] != tinkStart {
		return 0, false
	}
	return binary.BigEndian.Uint32(text[1:]), true
}

// Bind makes associated data of what a value is bound to: a purpose, which keeps a value of one kind from being taken for another,
// and where it stands. Parts that may hold any bytes are told apart by their lengths.
func Bind(purpose string, parts ...string) []byte {
	out := binary.AppendUvarint(nil, uint64(len(purpose)))
	out = append(out, purpose...)
	for _, part := range parts {
		out = binary.AppendUvarint(out, uint64(len(part)))
		out = append(out, part...)
	}
	return out
}
