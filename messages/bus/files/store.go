// Package files keeps the files of runs on JetStream: contents by tenant and hash, and what refers to them.
//
// A [Store] is made from a Bus. It holds each content of a tenant once, however many runs have it, and what it returns has the
// hash that was asked for. [Store.Refer] keeps a manifest, with all that it names, until the run is purged. [Store.Collect] removes
// what nothing refers to; see docs/adr/0076-files-are-named-by-the-log.md for why it takes nothing that is about to be referred to.
//
// On the stream FILES, one message for each subject:
//
//	files.<tenant>.head.<hash>		a content, or where its parts are
//	files.<tenant>.part.<hash>.<put>.<n>	a part; the put is the storing that made it
//	files.<tenant>.part.upload.<put>.<n>	an upload, and how many bytes it counts: see Uploads
//	files.<tenant>.ref.<run>.<hash>		the run has, or had, the files of that manifest
//	files.<tenant>.named.<name>		the head of a named workspace
package files

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/messages/strict"
)

const (
	inline   = 64 << 10  // bytes of a content that is stored with its head
	partSize = 512 << 10 // bytes of a part of a larger one, unless the server takes less
	partRoom = 4 << 10   // kept free in a message for subject and headers
	maxHead  = 1 << 20   // bytes of a head that tells of parts

	// Margin is how long a content stays after it was stored or found, when nothing refers to it. A save that takes longer than a
	// sixth of it is given up.
	Margin = time.Hour
	// How old the newest mark of a content may be that is found; an older one is marked again.
	fresh = Margin / 2

	maxRaces = 8
)

// headerPut names, in the head of a content in parts, the storing that made them.
const headerPut = "Longshore-Put"

// Store keeps contents. Safe for concurrent use.
type Store struct {
	bus    *bus.Bus
	sealer Sealer // nil: contents are in the clear
	now    func() time.Time
}

// New returns the files that a bus holds, in the clear.
func New(b *bus.Bus) *Store { return &Store{bus: b, now: time.Now} }

// NewSealed is New with contents that are sealed for their tenant. A content keeps its name, the hash of what it was before it was
// sealed, so a tenant still has each once.
func NewSealed(b *bus.Bus, s Sealer) *Store { return &Store{bus: b, sealer: s, now: time.Now} }

func (st *Store) stream() bus.Stream { return st.bus.Stream(bus.StreamFiles) }

func headSubject(tenant, hash string) string { return "files." + tenant + ".head." + hash }

func partsPrefix(tenant, hash, put string) string {
	return "files." + tenant + ".part." + hash + "." + put + "."
}

func check(tenant, hash string) error {
	if err := strict.CheckToken("tenant", tenant); err != nil {
		return err
	}
	if !manifest.ValidHash(hash) {
		return fmt.Errorf("%q is no hash", strict.Clip(hash, 80))
	}
	return nil
}

// Has reports whether a content is stored. If so it stays for half of Margin at least, though nothing refers to it yet.
func (st *Store) Has(ctx context.Context, tenant, hash string) (bool, error) {
	_, ok, err := st.Stat(ctx, tenant, hash)
	return ok, err
}

// Stat is Has with the size of the content.
func (st *Store) Stat(ctx context.Context, tenant, hash string) (size int64, ok bool, err error) {
	if err := check(tenant, hash); err != nil {
		return 0, false, err
	}
	for range maxRaces {
		m, ok, err := st.stream().Get(ctx, bus.Lookup{Last: headSubject(tenant, hash)})
		if err != nil || !ok {
			return 0, false, err
		}
		c, err := st.content(ctx, tenant, hash, &m)
		if err != nil {
			if errors.Is(err, manifest.ErrDamaged) { // to store the content again mends it
				err = nil
			}
			return 0, false, err
		}
		size := c.Size
		if st.now().Sub(m.Time) < fresh {
			return size, true, nil
		}
		// The same once more is newer. It must not come back when it has been removed since: its parts have too.
		again := &nats.Msg{Subject: m.Subject, Header: nats.Header{}, Data: m.Data}
		if put := m.Header.Get(headerPut); put != "" {
			again.Header.Set(headerPut, put)
		}
		bus.Expect(again, m.Seq)
		_, err = st.bus.Store(ctx, again)
		switch {
		case err == nil:
			return size, true, nil
		case !bus.Refused(err, bus.CodeWrongLast):
			return 0, false, err
		} // another one was faster, or an answer was lost
	}
	return 0, false, errors.New("too many others store the same content at once")
}

// Put stores a content of size bytes; it reads no more of r. If r has less, or another content than the hash says, the error is
// manifest.ErrDamaged and nothing refers to what was stored. All is acknowledged when it returns.
func (st *Store) Put(ctx context.Context, tenant, hash string, size int64, r io.Reader) error {
	if err := check(tenant, hash); err != nil {
		return err
	}
	if size < 0 {
		return fmt.Errorf("a content of %d bytes", size)
	}
	sum := sha256.New()
	r = io.TeeReader(io.LimitReader(r, size), sum)
	m := &nats.Msg{Subject: headSubject(tenant, hash), Header: nats.Header{}}
	if size <= inline {
		data, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if m.Data, err = st.seal(ctx, tenant, data, placeOf(tenant, hash, "", 0)); err != nil {
			return err
		}
	} else {
		h, err := st.putParts(ctx, tenant, hash, size, r)
		if err != nil {
			return err
		}
		data, err := json.Marshal(h)
		if err != nil {
			return fmt.Errorf("encode head: %w", err)
		}
		if m.Data, err = st.seal(ctx, tenant, data, placeOf(tenant, hash, h.Put, headPart)); err != nil {
			return err
		}
		if len(m.Data) > maxHead {
			return fmt.Errorf("a content of %d bytes has too many parts", size)
		}
		m.Header.Set(headerPut, h.Put)
	}
	if hex.EncodeToString(sum.Sum(nil)) != hash {
		return fmt.Errorf("store %s: %w", hash, manifest.ErrDamaged)
	}
	_, err := st.bus.Store(ctx, m)
	return err
}

// head says where the parts of a content are.
type head struct {
	Size int64    `json:"size"`
	Part int64    `json:"part"`  // bytes of each part but the last
	Put  string   `json:"put"`   // as in the header
	Sums []string `json:"parts"` // hashes
}

func (h *head) check() error {
	switch {
	case h.Size < 1 || h.Part < 1 || h.Part > partSize || int64(len(h.Sums)) != (h.Size+h.Part-1)/h.Part:
		return errors.New("sizes that do not fit")
	case !strict.ValidToken(h.Put):
		return errors.New("no name of a storing")
	}
	for _, sum := range h.Sums {
		if !manifest.ValidHash(sum) {
			return errors.New("a part without a hash")
		}
	}
	return nil
}

func (st *Store) putParts(ctx context.Context, tenant, hash string, size int64, r io.Reader) (*head, error) {
	h := &head{Size: size, Part: min(partSize, st.bus.Conn().MaxPayload()-partRoom), Put: rand.Text()}
	if h.Part < 1 {
		return nil, fmt.Errorf("the server's max_payload of %d bytes is too small", st.bus.Conn().MaxPayload())
	}
	part := make([]byte, h.Part)
	for left := size; left > 0; left -= h.Part {
		n, err := io.ReadFull(r, part[:min(left, h.Part)])
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, fmt.Errorf("store %s: %w", hash, manifest.ErrDamaged)
		}
		if err != nil {
			return nil, err
		}
		subject := partsPrefix(tenant, hash, h.Put) + strconv.Itoa(len(h.Sums))
		data, err := st.seal(ctx, tenant, part[:n], placeOf(tenant, hash, h.Put, int64(len(h.Sums))))
		if err != nil {
			return nil, err
		}
		if _, err := st.bus.Store(ctx, &nats.Msg{Subject: subject, Header: nats.Header{}, Data: data}); err != nil {
			return nil, err
		}
		h.Sums = append(h.Sums, manifest.HashOf(part[:n]))
	}
	return h, nil
}

// Refer keeps a manifest and what it names until the run is purged. They must have been stored, or found by Has, within half of
// Margin before.
func (st *Store) Refer(ctx context.Context, run messages.Ref, hash string) error {
	if err := errors.Join(run.Check(), check(run.Tenant, hash)); err != nil {
		return err
	}
	return st.bus.StoreFirst(ctx, &nats.Msg{Subject: RefsPrefix(run) + hash, Header: nats.Header{}})
}

// Share has a run refer to a manifest that another one refers to, of the same tenant. The error manifest.ErrMissing says that the other one
// no longer does: it is being purged, and the files may be gone.
func (st *Store) Share(ctx context.Context, from, to messages.Ref, hash string) error {
	if err := errors.Join(from.Check(), st.Refer(ctx, to, hash)); err != nil {
		return err
	}
	// The reference of the other run was there while ours is: nothing was removed in between.
	_, ok, err := st.stream().Get(ctx, bus.Lookup{Last: RefsPrefix(from) + hash})
	if err == nil && !ok {
		err = manifest.ErrMissing
	}
	if err != nil {
		return fmt.Errorf("look for the files of %s: %w", from, err)
	}
	return nil
}

// RefsPrefix begins the subjects of what a run refers to; the hash of a manifest ends it.
func RefsPrefix(run messages.Ref) string { return "files." + run.Tenant + ".ref." + run.Run + "." }

// Manifest reads a manifest.
func (st *Store) Manifest(ctx context.Context, tenant, hash string) (*manifest.Manifest, error) {
	var data bytes.Buffer
	if err := st.Get(ctx, tenant, hash, manifest.MaxEncoded, &data); err != nil {
		return nil, fmt.Errorf("read manifest %s: %w", hash, err)
	}
	return manifest.Decode(data.Bytes())
}

// Referred returns the manifests that a run refers to.
func (st *Store) Referred(ctx context.Context, run messages.Ref) (hashes []string, err error) {
	if err := run.Check(); err != nil {
		return nil, err
	}
	for subject, err := range st.stream().Subjects(ctx, RefsPrefix(run)+"*") {
		if err != nil {
			return nil, fmt.Errorf("look for the files of %s: %w", run, err)
		}
		if hash := strings.TrimPrefix(subject, RefsPrefix(run)); manifest.ValidHash(hash) {
			hashes = append(hashes, hash)
		}
	}
	return hashes, nil
}
