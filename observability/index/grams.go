package index

import "math/bits"

// A text is searched by the three-byte pieces that it consists of. A piece has a bucket; several pieces share one, so that what
// the buckets say is checked with the text itself.
const (
	gramSize   = 3
	gramShift  = 20 // of a 32-bit product: 4096 buckets
	buckets    = 1 << (32 - gramShift)
	maxGrams   = 8 // of a search that are looked up; further ones leave out next to nothing
	blockRuns  = 8192
	blockBytes = blockRuns / 8
)

// bucket is that of the piece that begins a text.
func bucket(s string) int {
	return int((uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16) * 2654435761 >> gramShift)
}

// gramsOf are the buckets of up to maxGrams pieces of a search, spread over it. They are none of one that is too short.
func gramsOf(search string) []int {
	n := len(search) - gramSize + 1
	if n < 1 {
		return nil
	}
	var out []int
	seen := map[int]bool{}
	for i := range min(n, maxGrams) {
		at := i * (n - 1) / max(min(n, maxGrams)-1, 1)
		if b := bucket(search[at:]); !seen[b] {
			seen[b] = true
			out = append(out, b)
		}
	}
	return out
}

// block says of up to blockRuns texts which buckets their pieces have: a bit per bucket and text.
type block [buckets * blockBytes]byte

// add takes the text of a number in.
func (b *block) add(n int, text string) {
	for ; len(text) >= gramSize; text = text[1:] {
		b[bucket(text)*blockBytes+n/8] |= 1 << (n % 8)
	}
}

// of are the bits of a bucket; nil: it has none.
func (b *block) of(bucket int) []byte {
	part := b[bucket*blockBytes : (bucket+1)*blockBytes]
	for _, x := range part {
		if x != 0 {
			return part
		}
	}
	return nil
}

// both leaves those bits of a that b has too.
func both(a, b []byte) {
	for i := range a {
		if i < len(b) {
			a[i] &= b[i]
		} else {
			a[i] = 0
		}
	}
}

// set are the numbers of the bits.
func set(of []byte) (out []int) {
	for i, x := range of {
		for ; x != 0; x &= x - 1 {
			out = append(out, i*8+bits.TrailingZeros8(x))
		}
	}
	return out
}
