package files

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/manifest"
	"github.com/longshore-run/longshore/messages/strict"
)

const (
	defaultContent = 256 << 20
	defaultPending = 1 << 30

	contentCharge = 1 << 10  // counted for each content beside its bytes
	leastCharge   = 64 << 10 // counted for each entry: bounds how many there are
	undoTimeout   = 5 * time.Second
	atOnce        = 16 // contents that one request looks for or stores at the same time
)

// ErrNoUpload means that there is no such upload: it has ended, was given up or took too long, or the parts do not fit it.
var ErrNoUpload = errors.New("no such upload")

// NoRoomError means that a tenant has as much uploaded as it may, which no run refers to yet.
type NoRoomError struct{ Pending, Most int64 }

func (e *NoRoomError) Error() string {
	return fmt.Sprintf("uploads of %d bytes, which no run refers to yet, would be more than the %d bytes that are allowed", e.Pending, e.Most)
}

// TooLargeError means that one content is larger than any may be.
type TooLargeError struct{ Size, Most int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("a content of %d bytes is larger than the %d bytes that are allowed", e.Size, e.Most)
}

// UploadLimits bound what callers upload.
type UploadLimits struct {
	Content int64 // bytes of one content; default 256 MiB
	Pending int64 // bytes of a tenant's uploads that no run refers to yet; default 1 GiB
}

// Uploads stores contents before a run refers to them. What a tenant has uploaded and no run refers to is bounded: each upload makes an
// entry with what it counts, on
//
//	files.<tenant>.part.upload.<put>.<bytes>
//
// which stays until its contents are referred to or removed. Safe for concurrent use, by several dispatchers at once.
type Uploads struct {
	st     *Store
	limits UploadLimits
	recent reckonings
}

// NewUploads returns the uploads to a store.
func NewUploads(st *Store, limits UploadLimits) *Uploads {
	if limits.Content == 0 {
		limits.Content = defaultContent
	}
	if limits.Pending == 0 {
		limits.Pending = defaultPending
	}
	return &Uploads{st: st, limits: limits}
}

// Piece names a content.
type Piece struct {
	Hash string `json:"hash"`
	Size int64  `json:"size"`
}

// entry is an upload: what it brought, or where one in parts is.
type entry struct {
	Contents []Piece   `json:"contents"`
	Began    time.Time `json:"began"`
	Head     head      `json:"head,omitzero"` // of one in parts
	Sum      []byte    `json:"sum,omitempty"` // state of the hash of these parts
	State    string    `json:"state,omitempty"`
}

// What becomes of an upload in parts. No part is stored after either, so that parts are only removed when no head can name them.
const (
	uploadWhole   = "whole"
	uploadGivenUp = "given up"
)

func uploadsPrefix(tenant string) string { return "files." + tenant + ".part.upload." }

func uploadSubject(tenant, put string, charge int64) string {
	return uploadsPrefix(tenant) + put + "." + strconv.FormatInt(charge, 10)
}

// chargeOf is what an upload counts.
func chargeOf(contents []Piece) (n int64) {
	for _, c := range contents {
		n += c.Size + contentCharge
	}
	return max(n, leastCharge)
}

// Missing returns those of the hashes that are not stored. The others stay for half of Margin at least.
func (u *Uploads) Missing(ctx context.Context, tenant string, hashes []string) (missing []string, err error) {
	has := make([]bool, len(hashes))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, hash := range hashes {
		group.Go(func() (err error) {
			has[i], err = u.st.Has(ctx, tenant, hash)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("look for contents: %w", err)
	}
	for i, hash := range hashes {
		if !has[i] {
			missing = append(missing, hash)
		}
	}
	return missing, nil
}

// Put stores contents, named by their hashes, which the caller has verified. Those that are stored already cost nothing.
func (u *Uploads) Put(ctx context.Context, tenant string, contents map[string][]byte) error {
	hashes := make([]string, 0, len(contents))
	for hash := range contents {
		hashes = append(hashes, hash)
	}
	missing, err := u.Missing(ctx, tenant, hashes)
	if err != nil || len(missing) == 0 {
		return err
	}
	e := &entry{Began: u.st.now()}
	for _, hash := range missing {
		size := int64(len(contents[hash]))
		if size > u.limits.Content {
			return &TooLargeError{size, u.limits.Content}
		}
		e.Contents = append(e.Contents, Piece{hash, size})
	}
	if _, err := u.open(ctx, tenant, rand.Text(), e); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, c := range e.Contents {
		group.Go(func() error { return u.st.Put(ctx, tenant, c.Hash, c.Size, bytes.NewReader(contents[c.Hash])) })
	}
	return group.Wait()
}

// open makes the entry of an upload, unless the tenant would have more pending than it may. It is made before it is counted, so that
// of two at once neither misses the other.
func (u *Uploads) open(ctx context.Context, tenant, put string, e *entry) (seq uint64, err error) {
	charge := chargeOf(e.Contents)
	seq, err = u.keep(ctx, tenant, put, e, 0)
	if err != nil {
		return 0, fmt.Errorf("begin an upload: %w", err)
	}
	pending, err := u.pending(ctx, tenant)
	if err == nil && pending > u.limits.Pending && u.recent.begin(tenant, u.st.now()) {
		pending, err = u.reckon(ctx, tenant)
		u.recent.end(tenant, err == nil && pending <= u.limits.Pending, u.st.now())
	}
	if err == nil && pending > u.limits.Pending {
		err = &NoRoomError{pending, u.limits.Pending}
	}
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout) // also for a caller that has gone
		defer cancel()
		return 0, errors.Join(err, u.st.stream().Clear(ctx, uploadSubject(tenant, put, charge)))
	}
	return seq, nil
}

// keep stores an entry in place of the one of a sequence; 0: there is none.
func (u *Uploads) keep(ctx context.Context, tenant, put string, e *entry, last uint64) (seq uint64, err error) {
	data, err := json.Marshal(e)
	if err != nil {
		return 0, fmt.Errorf("encode an upload: %w", err)
	}
	// The state of a hash holds the last bytes that it was given.
	if data, err = u.st.seal(ctx, tenant, data, placeOf(tenant, "", put, entryPart)); err != nil {
		return 0, err
	}
	m := &nats.Msg{Subject: uploadSubject(tenant, put, chargeOf(e.Contents)), Header: nats.Header{}, Data: data}
	bus.Expect(m, last)
	r, err := u.st.bus.Store(ctx, m)
	return r.Seq, err
}

// entry reads the entry of a subject.
func (st *Store) entry(ctx context.Context, tenant, subject string, data []byte) (*entry, error) {
	put, _, _ := strings.Cut(strings.TrimPrefix(subject, uploadsPrefix(tenant)), ".")
	data, err := st.open(ctx, tenant, data, placeOf(tenant, "", put, entryPart))
	var e entry
	if err == nil {
		err = strict.Decode(data, &e)
	}
	if err != nil {
		return nil, fmt.Errorf("read an upload: %w", err)
	}
	return &e, nil
}

// pending is what the uploads of a tenant count.
func (u *Uploads) pending(ctx context.Context, tenant string) (n int64, err error) {
	for subject, err := range u.st.stream().Subjects(ctx, uploadsPrefix(tenant)+"*.*") {
		if err != nil {
			return 0, fmt.Errorf("count uploads: %w", err)
		}
		n += chargeIn(subject)
	}
	return n, nil
}

// chargeIn is what the entry of a subject counts.
func chargeIn(subject string) int64 {
	n, err := strconv.ParseInt(subject[strings.LastIndexByte(subject, '.')+1:], 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// reckon removes the entries whose contents runs refer to by now, as far as that is needed, and returns what is left. An entry is
// older than the references to what it brought, for that was not stored before.
func (u *Uploads) reckon(ctx context.Context, tenant string) (pending int64, err error) {
	left := map[string]*entry{}
	var since time.Time
	for m, err := range u.st.stream().ScanPages(ctx, bus.Page{Seq: 1, Next: uploadsPrefix(tenant) + "*.*", Batch: bus.FirstPage, Bytes: bus.PageBytes}) {
		if err != nil {
			return 0, fmt.Errorf("read uploads: %w", err)
		}
		e, err := u.st.entry(ctx, tenant, m.Subject, m.Data)
		if errors.Is(err, manifest.ErrDamaged) {
			pending += chargeIn(m.Subject)
			continue
		}
		if err != nil {
			return 0, err
		}
		left[m.Subject] = e
		pending += chargeIn(m.Subject)
		if since.IsZero() || e.Began.Before(since) {
			since = e.Began
		}
	}
	since = since.Add(-maxSkew)
	seen := map[string]bool{}
	for m, err := range u.st.stream().ScanPages(ctx, bus.Page{Since: bus.StartTime(since), Next: "files." + tenant + ".ref.*.*", Batch: bus.FirstPage, Bytes: bus.PageBytes}) {
		if err != nil {
			return 0, fmt.Errorf("read what runs refer to: %w", err)
		}
		hash := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
		if seen[hash] || !manifest.ValidHash(hash) {
			continue
		}
		seen[hash] = true
		list, err := u.st.Manifest(ctx, tenant, hash)
		if errors.Is(err, manifest.ErrMissing) || errors.Is(err, manifest.ErrDamaged) {
			continue
		}
		if err != nil {
			return 0, err
		}
		referred := map[string]bool{hash: true}
		for i := range list.Files {
			referred[list.Files[i].Hash] = true
		}
		for subject, e := range left {
			if !e.settled(referred) {
				continue
			}
			delete(left, subject)
			pending -= chargeIn(subject)
			if err := u.st.stream().Clear(ctx, subject); err != nil {
				return 0, fmt.Errorf("remove an upload: %w", err)
			}
		}
		if pending <= u.limits.Pending {
			break
		}
	}
	return pending, nil
}

// maxSkew is how far the clocks of dispatchers may differ from the server's.
const maxSkew = Margin / 6

// settled takes what is referred to off an entry, and reports whether nothing is left.
func (e *entry) settled(referred map[string]bool) bool {
	var left []Piece
	for _, c := range e.Contents {
		if !referred[c.Hash] {
			left = append(left, c)
		}
	}
	e.Contents = left
	return len(left) == 0
}
