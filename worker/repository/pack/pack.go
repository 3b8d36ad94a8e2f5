// Package pack reads the objects of a commit as a git server sends them.
//
// [Read] inflates a pack into a [Spool] and names each object by its hash, which it computes; [Objects.List] lists the files of a
// commit. What is listed under a commit's hash is what that hash stands for, whatever the server is: a SHA-1 that was made to collide
// is found and refused.
//
// All of it is hostile. Objects and bytes are counted before they are stored, so the spool has a bound; memory does not grow with the
// size of an object, also when it is a delta.
package pack

import (
	"bufio"
	"compress/zlib"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/pjbgf/sha1cd"
)

// Errors of a pack.
var (
	ErrTooLarge  = errors.New("is larger than may be fetched")
	ErrMalformed = errors.New("is no pack that can be read")
	ErrCollision = errors.New("has an object whose hash was made to be that of another one")
)

// Limits of a pack.
type Limits struct {
	Objects int   // deltas are objects
	Bytes   int64 // of the spool: objects and deltas together, inflated
}

// Spool takes what is appended, and gives it back.
type Spool interface {
	io.Writer
	io.ReaderAt
}

// ID names an object: the SHA-1 of its kind, size and content.
type ID [sha1cd.Size]byte

// ParseID reads an ID in hex.
func ParseID(s string) (id ID, err error) {
	n, err := hex.Decode(id[:], []byte(s))
	if err == nil && n != len(id) {
		err = fmt.Errorf("%d digits, want %d", 2*n, 2*len(id))
	}
	return id, err
}

func (id ID) String() string { return hex.EncodeToString(id[:]) }

// kind of an entry of a pack, as the format numbers them.
type kind uint8

const (
	commit   kind = 1
	tree     kind = 2
	blob     kind = 3
	tag      kind = 4
	ofsDelta kind = 6
	refDelta kind = 7
)

func (k kind) String() string {
	switch k {
	case commit:
		return "commit"
	case tree:
		return "tree"
	case blob:
		return "blob"
	case tag:
		return "tag"
	default:
		return "delta"
	}
}

// region is a part of the spool.
type region struct{ at, size int64 }

// object is one that is whole.
type object struct {
	region

	kind kind
}

// Objects are those of a pack.
type Objects struct {
	spool Spool
	known map[ID]object
}

const (
	signature = "PACK"
	buffered  = 64 << 10
)

// Read reads a pack to its last object. The errors of this package are those of its content; any other is that of r, the spool or ctx.
func Read(ctx context.Context, r io.Reader, spool Spool, l Limits) (*Objects, error) {
	p := &packReader{
		Objects: Objects{spool, map[ID]object{}}, in: &counted{Reader: bufio.NewReaderSize(r, buffered)}, limits: l,
		out: bufio.NewWriterSize(spool, buffered), sum: sha1cd.New(), at: map[int64]object{},
		waitAt: map[int64][]pending{}, waitID: map[ID][]pending{},
	}
	var head [12]byte
	if _, err := io.ReadFull(p.in, head[:]); err != nil {
		return nil, cut(err)
	}
	version, n := binary.BigEndian.Uint32(head[4:8]), binary.BigEndian.Uint32(head[8:])
	switch {
	case string(head[:4]) != signature || version != 2 && version != 3:
		return nil, fmt.Errorf("%w: it begins with %q", ErrMalformed, head[:8])
	case int64(n) > int64(l.Objects):
		return nil, fmt.Errorf("%w: it has %d objects, and the limit is %d", ErrTooLarge, n, l.Objects)
	}
	for range n {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := p.entry(); err != nil {
			return nil, err
		}
		if err := p.applyReady(ctx); err != nil {
			return nil, err
		}
	}
	if len(p.waitAt)+len(p.waitID) > 0 {
		return nil, fmt.Errorf("%w: a delta has no base", ErrMalformed)
	}
	return &p.Objects, nil
}

// cut is an end of input that comes too early.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// packReader reads entries one after the other.
type packReader struct {
	Objects

	in     *counted
	limits Limits
	zip    io.ReadCloser // nil before the first entry
	out    *bufio.Writer
	end    int64 // of the spool
	sum    hash.Hash
	at     map[int64]object // by where its entry begins in the pack

	waitAt map[int64][]pending // deltas by the base that they wait for
	waitID map[ID][]pending
	ready  []pending // deltas whose base is known
}

// pending is a delta that is not applied yet.
type pending struct {
	delta region
	at    int64  // where its entry begins in the pack
	base  object // of one that is ready
}

// counted knows how much was read. It reads no more than it is asked for, as far as its user can tell.
type counted struct {
	*bufio.Reader

	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

func (c *counted) ReadByte() (byte, error) {
	b, err := c.Reader.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

// entry reads one.
func (p *packReader) entry() error {
	at := p.in.n
	k, size, err := p.header()
	if err != nil {
		return err
	}
	switch k {
	case commit, tree, blob, tag:
		o, id, err := p.whole(k, size)
		if err != nil {
			return err
		}
		p.learn(at, id, o)
	case ofsDelta:
		back, err := p.offset()
		if err != nil {
			return err
		}
		if back <= 0 || back > at {
			return fmt.Errorf("%w: a delta has its base outside of it", ErrMalformed)
		}
		delta, err := p.inflate(size, p.out)
		if err != nil {
			return err
		}
		if base, ok := p.at[at-back]; ok {
			p.ready = append(p.ready, pending{delta, at, base})
		} else {
			p.waitAt[at-back] = append(p.waitAt[at-back], pending{delta: delta, at: at})
		}
	case refDelta:
		var id ID
		if _, err := io.ReadFull(p.in, id[:]); err != nil {
			return cut(err)
		}
		delta, err := p.inflate(size, p.out)
		if err != nil {
			return err
		}
		if base, ok := p.known[id]; ok {
			p.ready = append(p.ready, pending{delta, at, base})
		} else {
			p.waitID[id] = append(p.waitID[id], pending{delta: delta, at: at})
		}
	default:
		return fmt.Errorf("%w: an entry is of the kind %d", ErrMalformed, k)
	}
	return nil
}

// header reads the kind and the size of an entry.
func (p *packReader) header() (kind, int64, error) {
	b, err := p.in.ReadByte()
	if err != nil {
		return 0, 0, cut(err)
	}
	k, size := kind(b>>4&7), int64(b&15)
	for shift := 4; b&0x80 != 0; shift += 7 {
		if b, err = p.in.ReadByte(); err != nil {
			return 0, 0, cut(err)
		}
		if shift > 53 {
			return 0, 0, fmt.Errorf("%w: an entry says that it has 2^60 bytes", ErrTooLarge)
		}
		size |= int64(b&0x7f) << shift
	}
	return k, size, nil
}

// offset reads by how much the base of a delta is before it.
func (p *packReader) offset() (int64, error) {
	b, err := p.in.ReadByte()
	n := int64(b & 0x7f)
	for err == nil && b&0x80 != 0 {
		if n > 1<<48 {
			return 0, fmt.Errorf("%w: a delta has its base outside of it", ErrMalformed)
		}
		b, err = p.in.ReadByte()
		n = (n+1)<<7 | int64(b&0x7f)
	}
	return n, cut(err)
}

// whole reads an object that is no delta.
func (p *packReader) whole(k kind, size int64) (object, ID, error) {
	begin(p.sum, k, size)
	r, err := p.inflate(size, io.MultiWriter(p.out, p.sum))
	if err != nil {
		return object{}, ID{}, err
	}
	id, err := p.sumID()
	return object{r, k}, id, err
}

func begin(sum hash.Hash, k kind, size int64) {
	sum.Reset()
	_, _ = fmt.Fprintf(sum, "%s %d\x00", k, size)
}

func (p *packReader) sumID() (id ID, err error) {
	if safe, ok := p.sum.(sha1cd.CollisionResistantHash); ok {
		sum, collides := safe.CollisionResistantSum(nil)
		if collides {
			return id, ErrCollision
		}
		return ID(sum), nil
	}
	return id, errors.New("SHA-1 without a search for collisions")
}

// afford counts bytes that are about to be appended to the spool.
func (p *packReader) afford(size int64) error {
	if size > p.limits.Bytes-p.end {
		return fmt.Errorf("%w: unpacked it has more than %d bytes", ErrTooLarge, p.limits.Bytes)
	}
	return nil
}

// inflate appends the content of an entry to the spool.
func (p *packReader) inflate(size int64, w io.Writer) (region, error) {
	if err := p.afford(size); err != nil {
		return region{}, err
	}
	var err error
	if p.zip == nil {
		p.zip, err = zlib.NewReader(p.in)
	} else if again, ok := p.zip.(zlib.Resetter); ok {
		err = again.Reset(p.in, nil)
	}
	if err != nil {
		return region{}, inflated(err)
	}
	if n, err := io.CopyN(w, p.zip, size); err != nil {
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("%w: an entry has %d bytes, and says that it has %d", ErrMalformed, n, size)
		}
		return region{}, inflated(err)
	}
	var more [1]byte
	switch n, err := io.ReadFull(p.zip, more[:]); {
	case n > 0:
		return region{}, fmt.Errorf("%w: an entry has more than the %d bytes that it says", ErrMalformed, size)
	case !errors.Is(err, io.EOF):
		return region{}, inflated(err)
	}
	return p.append(size)
}

// append books what was written to the spool.
func (p *packReader) append(size int64) (region, error) {
	r := region{p.end, size}
	p.end += size
	return r, p.out.Flush()
}

// inflated is an error of zlib as one of the pack.
func inflated(err error) error {
	if errors.Is(err, zlib.ErrHeader) || errors.Is(err, zlib.ErrChecksum) || errors.Is(err, zlib.ErrDictionary) || isCorrupt(err) {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return cut(err)
}

// learn books an object. The deltas that wait for it are ready then.
func (p *packReader) learn(at int64, id ID, o object) {
	p.at[at], p.known[id] = o, o
	for _, d := range append(p.waitAt[at], p.waitID[id]...) {
		d.base = o
		p.ready = append(p.ready, d)
	}
	delete(p.waitAt, at)
	delete(p.waitID, id)
}

// applyReady applies the deltas that are ready, and those that are so with them.
func (p *packReader) applyReady(ctx context.Context) error {
	for len(p.ready) > 0 {
		d := p.ready[len(p.ready)-1]
		p.ready = p.ready[:len(p.ready)-1]
		if err := p.apply(ctx, d); err != nil {
			return err
		}
	}
	return nil
}
