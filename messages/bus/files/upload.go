package files

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/messages/strict"
)

// maxUpload is how long an upload in parts may take: none of its parts is old enough to be removed by then.
const maxUpload time.Duration = Margin / 2

// Part is a part of a content that is uploaded. Parts come in order, all but the last of the same length.
type Part struct {
	Hash   string
	Size   int64  // of the whole
	Upload string // that the first part began; empty: this is the first
	Offset int64
	Data   []byte
}

// Progress is how far an upload has come.
type Progress struct {
	Upload string
	Next   int64 // offset of the part that is expected
	Done   bool  // all is stored, and was verified
}

// PartSize is the most bytes that a part may have.
func (u *Uploads) PartSize() int64 { return min(partSize, u.st.bus.Conn().MaxPayload()-partRoom) }

// Part stores a part. The first one begins an upload, unless the content is stored already: then all is done. The last one verifies the
// hash of the whole: another one is manifest.ErrDamaged, and what was uploaded is removed. A part may be sent again.
func (u *Uploads) Part(ctx context.Context, tenant string, p Part) (Progress, error) {
	if err := check(tenant, p.Hash); err != nil {
		return Progress{}, err
	}
	size := int64(len(p.Data))
	switch {
	case p.Size > u.limits.Content:
		return Progress{}, &TooLargeError{p.Size, u.limits.Content}
	case p.Size < 1 || p.Offset < 0 || size < 1 || size > u.PartSize() || p.Offset+size > p.Size:
		return Progress{}, fmt.Errorf("%w: %d bytes at %d of %d are no part", ErrNoUpload, size, p.Offset, p.Size)
	}
	if p.Upload == "" {
		return u.begin(ctx, tenant, &p)
	}
	if !strict.ValidToken(p.Upload) {
		return Progress{}, ErrNoUpload
	}
	e, seq, err := u.entry(ctx, tenant, p.Upload, p.Hash, p.Size)
	if err != nil {
		return Progress{}, err
	}
	return u.add(ctx, tenant, &p, e, seq)
}

// begin stores the first part.
func (u *Uploads) begin(ctx context.Context, tenant string, p *Part) (Progress, error) {
	switch has, err := u.st.Has(ctx, tenant, p.Hash); {
	case err != nil:
		return Progress{}, err
	case has:
		return Progress{Next: p.Size, Done: true}, nil
	}
	size := int64(len(p.Data))
	parts := (p.Size + size - 1) / size
	if p.Offset != 0 || parts*int64(hex.EncodedLen(sha256.Size)+len(`"",`)) > min(maxHead, u.PartSize())-partRoom {
		return Progress{}, fmt.Errorf("%w: %d bytes in parts of %d", ErrNoUpload, p.Size, size)
	}
	p.Upload = rand.Text()
	sum, err := stateOf(sha256.New())
	if err != nil {
		return Progress{}, err
	}
	e := &entry{Contents: []Piece{{p.Hash, p.Size}}, Began: u.st.now(), Head: head{Size: p.Size, Part: size, Put: p.Upload}, Sum: sum}
	seq, err := u.open(ctx, tenant, p.Upload, e)
	if err != nil {
		return Progress{}, err
	}
	return u.add(ctx, tenant, p, e, seq)
}

// entry reads an upload in parts.
func (u *Uploads) entry(ctx context.Context, tenant, put, hash string, size int64) (*entry, uint64, error) {
	m, ok, err := u.st.stream().Get(ctx, bus.Lookup{Last: uploadSubject(tenant, put, chargeOf([]Piece{{hash, size}}))})
	if err != nil {
		return nil, 0, fmt.Errorf("read an upload: %w", err)
	}
	if !ok {
		return nil, 0, ErrNoUpload
	}
	e, err := u.st.entry(ctx, tenant, m.Subject, m.Data)
	if err != nil {
		return nil, 0, err
	}
	if len(e.Contents) != 1 || e.Contents[0] != (Piece{hash, size}) || e.Head.Put != put || e.State == uploadGivenUp {
		return nil, 0, ErrNoUpload
	}
	return e, m.Seq, nil
}

// next is the offset of the part that an upload expects.
func (e *entry) next() int64 { return min(int64(len(e.Head.Sums))*e.Head.Part, e.Head.Size) }

// add stores a part of an upload, and its head after the last one.
func (u *Uploads) add(ctx context.Context, tenant string, p *Part, e *entry, seq uint64) (Progress, error) {
	sum, n, size := manifest.HashOf(p.Data), p.Offset/e.Head.Part, int64(len(p.Data))
	switch {
	case u.st.now().Sub(e.Began) > maxUpload: // from then on what it stored may be removed
		return Progress{}, fmt.Errorf("%w: it has taken longer than %v", ErrNoUpload, maxUpload)
	case p.Offset%e.Head.Part != 0 || n > int64(len(e.Head.Sums)) || size != min(e.Head.Part, e.Head.Size-p.Offset):
		return Progress{}, fmt.Errorf("%w: it expects the part at %d", ErrNoUpload, e.next())
	case n < int64(len(e.Head.Sums)): // again, because the answer was lost
		return u.again(ctx, tenant, p, e, sum)
	}
	if err := u.first(ctx, tenant, p, n); err != nil {
		return Progress{}, err
	}
	state, err := resumed(e.Sum)
	if err != nil {
		return Progress{}, err
	}
	_, _ = state.Write(p.Data) // never an error
	e.Head.Sums = append(e.Head.Sums, sum)
	if e.next() == e.Head.Size {
		if hex.EncodeToString(state.Sum(nil)) != p.Hash {
			return Progress{}, u.refuse(ctx, tenant, p)
		}
		e.State = uploadWhole
	}
	if e.Sum, err = stateOf(state); err != nil {
		return Progress{}, err
	}
	switch _, err := u.keep(ctx, tenant, p.Upload, e, seq); {
	case bus.Refused(err, bus.CodeWrongLast): // sent twice at once, or the acknowledgement was lost
		if e, _, err = u.entry(ctx, tenant, p.Upload, p.Hash, p.Size); err != nil {
			return Progress{}, err
		}
		return u.again(ctx, tenant, p, e, sum)
	case err != nil:
		return Progress{}, fmt.Errorf("store a part: %w", err)
	}
	return u.end(ctx, tenant, p, e)
}

// again answers for a part that is stored.
func (u *Uploads) again(ctx context.Context, tenant string, p *Part, e *entry, sum string) (Progress, error) {
	n := p.Offset / e.Head.Part
	if n >= int64(len(e.Head.Sums)) || e.Head.Sums[n] != sum {
		return Progress{}, fmt.Errorf("%w: it has another part at %d", ErrNoUpload, p.Offset)
	}
	return u.end(ctx, tenant, p, e)
}

// stateOf is the state of a hash, with which resumed continues it.
func stateOf(sum hash.Hash) ([]byte, error) {
	m, ok := sum.(encoding.BinaryMarshaler)
	if !ok {
		return nil, errors.New("the hash has no state to keep")
	}
	return m.MarshalBinary()
}

func resumed(state []byte) (hash.Hash, error) {
	sum := sha256.New()
	m, ok := sum.(encoding.BinaryUnmarshaler)
	if !ok {
		return nil, errors.New("the hash has no state to keep")
	}
	if err := m.UnmarshalBinary(state); err != nil {
		return nil, fmt.Errorf("read an upload: %w", err)
	}
	return sum, nil
}

// first stores a part unless another one has its place: of two at once the first counts, and what the entry says of it stays true.
func (u *Uploads) first(ctx context.Context, tenant string, p *Part, n int64) error {
	subject, place := partsPrefix(tenant, p.Hash, p.Upload)+strconv.FormatInt(n, 10), placeOf(tenant, p.Hash, p.Upload, n)
	data, err := u.st.seal(ctx, tenant, p.Data, place)
	if err != nil {
		return err
	}
	m := &nats.Msg{Subject: subject, Header: nats.Header{}, Data: data}
	bus.Expect(m, 0)
	_, err = u.st.bus.Store(ctx, m)
	if !bus.Refused(err, bus.CodeWrongLast) {
		return err
	}
	has, ok, err := u.st.stream().Get(ctx, bus.Lookup{Last: subject})
	if err == nil && ok {
		data, err = u.st.open(ctx, tenant, has.Data, place)
	}
	switch {
	case err != nil:
		return fmt.Errorf("read a part: %w", err)
	case !ok || !bytes.Equal(data, p.Data):
		return fmt.Errorf("%w: it has another part there", ErrNoUpload)
	default:
		return nil
	}
}

// end stores the head of an upload that is whole.
func (u *Uploads) end(ctx context.Context, tenant string, p *Part, e *entry) (Progress, error) {
	done := Progress{p.Upload, e.next(), e.State == uploadWhole}
	if !done.Done {
		return done, nil
	}
	data, err := json.Marshal(e.Head)
	if err != nil {
		return done, fmt.Errorf("encode head: %w", err)
	}
	if data, err = u.st.seal(ctx, tenant, data, placeOf(tenant, p.Hash, p.Upload, headPart)); err != nil {
		return done, err
	}
	m := &nats.Msg{Subject: headSubject(tenant, p.Hash), Header: nats.Header{headerPut: {p.Upload}}, Data: data}
	if _, err := u.st.bus.Store(ctx, m); err != nil {
		return done, fmt.Errorf("store %s: %w", p.Hash, err)
	}
	return done, nil
}

// refuse ends an upload of another content than its hash says.
func (u *Uploads) refuse(ctx context.Context, tenant string, p *Part) error {
	if err := u.GiveUp(ctx, tenant, *p); err != nil {
		return fmt.Errorf("store %s: %w (%w)", p.Hash, manifest.ErrDamaged, err)
	}
	return fmt.Errorf("store %s: %w", p.Hash, manifest.ErrDamaged)
}

// GiveUp removes what an upload has stored, unless it is whole.
func (u *Uploads) GiveUp(ctx context.Context, tenant string, p Part) error {
	if err := check(tenant, p.Hash); err != nil {
		return err
	}
	if !strict.ValidToken(p.Upload) {
		return ErrNoUpload
	}
	e, seq, err := u.entry(ctx, tenant, p.Upload, p.Hash, p.Size)
	if err != nil {
		return err
	}
	if e.State == uploadWhole {
		return fmt.Errorf("%w: it has ended", ErrNoUpload)
	}
	e.State = uploadGivenUp
	if _, err := u.keep(ctx, tenant, p.Upload, e, seq); err != nil {
		return fmt.Errorf("give an upload up: %w", err)
	}
	if err := u.st.stream().Clear(ctx, partsPrefix(tenant, p.Hash, p.Upload)+"*"); err != nil {
		return fmt.Errorf("give an upload up: %w", err)
	}
	return u.st.stream().Clear(ctx, uploadSubject(tenant, p.Upload, chargeOf(e.Contents)))
}
