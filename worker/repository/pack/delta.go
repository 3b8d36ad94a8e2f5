package pack

import (
	"bufio"
	"compress/flate"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

func isCorrupt(err error) bool {
	_, ok := errors.AsType[flate.CorruptInputError](err)
	return ok
}

// apply makes an object of its base and a delta. It reads both from the spool, piece by piece.
func (p *packReader) apply(ctx context.Context, d pending) error {
	in := bufio.NewReader(io.NewSectionReader(p.spool, d.delta.at, d.delta.size))
	from, err := binary.ReadUvarint(in)
	if err != nil || from != uint64(d.base.size) {
		return fmt.Errorf("%w: a delta is for another base", ErrMalformed)
	}
	size, err := binary.ReadUvarint(in)
	if err != nil || size > 1<<60 {
		return fmt.Errorf("%w: a delta does not say how large its object is", ErrMalformed)
	}
	if err := p.afford(int64(size)); err != nil {
		return err
	}
	begin(p.sum, d.base.kind, int64(size))
	a := applying{in: in, base: d.base.region, spool: p.spool, out: io.MultiWriter(p.out, p.sum), left: int64(size)}
	if err := a.all(ctx); err != nil {
		return err
	}
	id, err := p.sumID()
	if err != nil {
		return err
	}
	r, err := p.append(int64(size))
	if err != nil {
		return err
	}
	p.learn(d.at, id, object{r, d.base.kind})
	return nil
}

// applying carries out the instructions of a delta.
type applying struct {
	in    *bufio.Reader
	base  region
	spool io.ReaderAt
	out   io.Writer
	left  int64 // bytes of the object that are missing
}

// lookEvery is after how many instructions the context is looked at.
const lookEvery = 1 << 10

func (a *applying) all(ctx context.Context) error {
	for i := 1; ; i++ {
		if i%lookEvery == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		op, err := a.in.ReadByte()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = a.one(op)
		}
		if err != nil {
			return err
		}
	}
	if a.left != 0 {
		return fmt.Errorf("%w: a delta makes less than it says", ErrMalformed)
	}
	return nil
}

// one carries out an instruction: to copy a part of the base, or to insert the bytes that follow.
func (a *applying) one(op byte) error {
	if op == 0 {
		return fmt.Errorf("%w: a delta has an unknown instruction", ErrMalformed)
	}
	from, size := io.Reader(a.in), int64(op)
	if op&0x80 != 0 {
		at, n, err := a.part(op)
		if err != nil {
			return err
		}
		if at > a.base.size || n > a.base.size-at {
			return fmt.Errorf("%w: a delta copies what its base does not have", ErrMalformed)
		}
		from, size = io.NewSectionReader(a.spool, a.base.at+at, n), n
	}
	if a.left -= size; a.left < 0 {
		return fmt.Errorf("%w: a delta makes more than it says", ErrMalformed)
	}
	if _, err := io.CopyN(a.out, from, size); err != nil {
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%w: a delta ends within an instruction", ErrMalformed)
		}
		return err
	}
	return nil
}

// part reads which part of the base is copied: the bits of the instruction say which bytes of the two numbers are there.
func (a *applying) part(op byte) (at, size int64, err error) {
	for i := range 7 {
		if op&(1<<i) == 0 {
			continue
		}
		b, err := a.in.ReadByte()
		if err != nil {
			return 0, 0, fmt.Errorf("%w: a delta ends within an instruction", ErrMalformed)
		}
		if i < 4 {
			at |= int64(b) << (8 * i)
		} else {
			size |= int64(b) << (8 * (i - 4))
		}
	}
	if size == 0 {
		size = 0x10000
	}
	return at, size, nil
}
