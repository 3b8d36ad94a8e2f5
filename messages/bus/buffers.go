package bus

import "sync"

// maxBuffer is how large a buffer may be that is kept.
const maxBuffer = 64 << 10

// buffers are used again.
type buffers struct{ pool sync.Pool } // of *[]byte

// get returns an empty buffer.
func (b *buffers) get() *[]byte {
	if buf, ok := b.pool.Get().(*[]byte); ok {
		*buf = (*buf)[:0]
		return buf
	}
	return new([]byte)
}

// put takes a buffer back that nobody uses any more; nil is none.
func (b *buffers) put(buf *[]byte) {
	if buf != nil && cap(*buf) <= maxBuffer {
		b.pool.Put(buf)
	}
}
