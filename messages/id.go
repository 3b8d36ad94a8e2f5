package messages

import (
	"crypto/rand"
	"encoding/binary"
	"time"
)

// crockford is the alphabet of a ULID (github.com/ulid/spec).
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// NewID returns a ULID: 26 characters that sort by the time t (milliseconds) and hold 80 random bits.
func NewID(t time.Time) string {
	var random [10]byte
	_, _ = rand.Read(random[:]) // crypto/rand.Read never fails
	return IDOf(t, random)
}

// IDOf is the ULID of a time with bits that the caller drew.
func IDOf(t time.Time, random [10]byte) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(t.UnixMilli())<<16)
	copy(b[6:], random[:])
	hi, lo := binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	var out [26]byte
	for i := range out {
		out[len(out)-1-i] = crockford[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return string(out[:])
}
