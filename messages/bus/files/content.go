package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/messages/strict"
)

// Content is a stored content, to be read.
type Content struct {
	Size int64

	st           *Store
	tenant, hash string
	whole        []byte // of one that is stored with its head
	head         head   // of any other
}

// Open looks a content up. One that is not stored is manifest.ErrMissing.
func (st *Store) Open(ctx context.Context, tenant, hash string) (*Content, error) {
	if err := check(tenant, hash); err != nil {
		return nil, err
	}
	m, ok, err := st.stream().Get(ctx, bus.Lookup{Last: headSubject(tenant, hash)})
	switch {
	case err != nil:
		return nil, fmt.Errorf("read content %s: %w", hash, err)
	case !ok:
		return nil, fmt.Errorf("read content %s: %w", hash, manifest.ErrMissing)
	}
	return st.content(ctx, tenant, hash, &m)
}

// content is the content that a message is the head of.
func (st *Store) content(ctx context.Context, tenant, hash string, m *bus.Message) (*Content, error) {
	c := &Content{st: st, tenant: tenant, hash: hash}
	put := m.Header.Get(headerPut)
	place := placeOf(tenant, hash, put, 0)
	if put != "" {
		place = placeOf(tenant, hash, put, headPart)
	}
	data, err := st.opened(ctx, tenant, m.Data, place, put == "", hash)
	if err != nil {
		return nil, fmt.Errorf("read content %s: %w", hash, err)
	}
	if put == "" {
		if manifest.HashOf(data) != hash {
			return nil, fmt.Errorf("read content %s: %w", hash, manifest.ErrDamaged)
		}
		c.Size, c.whole = int64(len(data)), data
		return c, nil
	}
	if err = strict.Decode(data, &c.head); err == nil {
		err = c.head.check()
	}
	if err != nil {
		return nil, fmt.Errorf("read content %s: %w: its head: %w", hash, manifest.ErrDamaged, err)
	}
	c.Size = c.head.Size
	return c, nil
}

// opened is a stored message as it was before it was sealed. One whose hash is known may be what was stored in the clear, whatever it
// begins with.
func (st *Store) opened(ctx context.Context, tenant string, stored, place []byte, known bool, hash string) ([]byte, error) {
	data, err := st.open(ctx, tenant, stored, place)
	if err != nil && known && bus.IsSealed(stored) && manifest.HashOf(stored) == hash {
		return stored, st.clear(ctx, tenant)
	}
	return data, err
}

// Copy writes length bytes from an offset to w, and less at the end of the content. Each part is verified by the hash that the head
// says it has, which says nothing about the whole: see Get.
func (c *Content) Copy(ctx context.Context, w io.Writer, offset, length int64) error {
	if offset < 0 || length < 0 {
		return fmt.Errorf("read %d bytes from %d", length, offset)
	}
	end := c.Size
	if length < c.Size-offset {
		end = offset + length
	}
	if c.head.Put == "" {
		if offset < end {
			_, err := w.Write(c.whole[offset:end])
			return err
		}
		return nil
	}
	for at := offset; at < end; {
		n := at / c.head.Part
		part, err := c.part(ctx, n)
		if err != nil {
			return err
		}
		from := n * c.head.Part
		part = part[at-from : min(end-from, int64(len(part)))]
		if _, err := w.Write(part); err != nil {
			return err
		}
		at += int64(len(part))
	}
	return nil
}

// part reads one part, which is acknowledged before its head is.
func (c *Content) part(ctx context.Context, n int64) ([]byte, error) {
	subject := partsPrefix(c.tenant, c.hash, c.head.Put) + strconv.FormatInt(n, 10)
	m, ok, err := c.st.stream().Get(ctx, bus.Lookup{Last: subject})
	size := min(c.head.Part, c.Size-n*c.head.Part)
	if err == nil && !ok {
		err = manifest.ErrMissing
	}
	var data []byte
	if err == nil {
		data, err = c.st.opened(ctx, c.tenant, m.Data, placeOf(c.tenant, c.hash, c.head.Put, n), true, c.head.Sums[n])
	}
	if err == nil && (int64(len(data)) != size || manifest.HashOf(data) != c.head.Sums[n]) {
		err = manifest.ErrDamaged
	}
	if err != nil {
		return nil, fmt.Errorf("read part %d of content %s: %w", n, c.hash, err)
	}
	return data, nil
}

// Get writes a content of size bytes at most to w. One that is not stored is manifest.ErrMissing, one that has another hash or is
// larger manifest.ErrDamaged; w may have a part of it by then.
func (st *Store) Get(ctx context.Context, tenant, hash string, size int64, w io.Writer) error {
	c, err := st.Open(ctx, tenant, hash)
	if err != nil {
		return err
	}
	if c.Size > size {
		return fmt.Errorf("read content %s: %d bytes in place of %d: %w", hash, c.Size, size, manifest.ErrDamaged)
	}
	sum := sha256.New()
	if err := c.Copy(ctx, io.MultiWriter(w, sum), 0, c.Size); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != hash {
		return fmt.Errorf("read content %s: %w", hash, manifest.ErrDamaged)
	}
	return nil
}
