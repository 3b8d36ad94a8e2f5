package longterm

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/messages/record"
)

// Sealer encrypts what a tenant's items say. Safe for concurrent use. An error that is a record.ErrUnreadable says that it will always fail, for
// every process; after any other the call may be made again.
type Sealer interface {
	// Seal encrypts with the newest key of a tenant. The result can be opened with the same bound alone.
	Seal(ctx context.Context, tenant string, plain, bound []byte) ([]byte, error)
	// Open decrypts what Seal returned, with the key that was the newest then. What was never sealed it returns as it is, or refuses.
	Open(ctx context.Context, tenant string, sealed, bound []byte) ([]byte, error)
}

// Bounds of a search through sealed items.
const (
	MaxSealedScan = 10_000
	sealedTimeout = 20 * time.Second
)

// Sealed returns a store that seals text, source and vector of each item before the given store sees them, bound to tenant, collection and
// id, so that a value cannot be moved. What is filtered by stays readable there: id, scope, tags, fields, times, the model's name, sizes.
//
// No index of words or vectors is kept, for it would tell what the texts say: a search opens the items that pass its filter, MaxSealedScan
// at most, and ranks them in the process. Items that were written without a sealer are read as they are, unless the sealer refuses that. Those that
// open for no process, because their key was destroyed or they were changed, are left out of a search, which says so; to read them is an error.
func Sealed(s Store, by Sealer) Store { return &sealed{s, by} }

type sealed struct {
	Store

	by Sealer
}

// secret is what is sealed of an item.
type secret struct {
	Text   string    `json:"text,omitempty"`
	Source Source    `json:"source,omitzero"`
	Vector []float32 `json:"vector,omitempty"`
}

// bound is what a sealed value belongs to.
func bound(at Place, id string) []byte {
	b := []byte("longshore long-term memory")
	for _, part := range []string{at.Tenant, at.Collection, id} {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(part))), part...)
	}
	return b
}

// Features implements Keeper.
func (s *sealed) Features() Features {
	f := s.Store.Features()
	f.TextIndex, f.VectorIndex, f.Readable, f.MaxScan = false, false, false, MaxSealedScan
	return f
}

// Write implements Writer.
func (s *sealed) Write(ctx context.Context, at Place, items []Item) error {
	if err := at.Check(); err != nil {
		return err
	}
	kept, err := CheckItems(items, time.Time{}) // the store's clock says when
	if err != nil {
		return err
	}
	for i := range kept {
		it := &kept[i]
		plain, err := json.Marshal(secret{it.Text, it.Source, it.Vector})
		if err != nil {
			return fmt.Errorf("encode item: %w", err)
		}
		if it.Sealed, err = s.by.Seal(ctx, at.Tenant, plain, bound(at, it.ID)); err != nil {
			return sealing("seal item "+it.ID, err)
		}
		it.Text, it.Source, it.Vector = "", Source{}, nil
	}
	return s.Store.Write(ctx, at, kept)
}

// sealing is an error of the sealer as a store returns it.
func sealing(what string, err error) error {
	if errors.Is(err, record.ErrUnreadable) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return fmt.Errorf("%w: %s: %w", ErrUnavailable, what, err)
}

// open opens items in place.
func (s *sealed) open(ctx context.Context, at Place, items []Item) error {
	for i := range items {
		if err := s.openOne(ctx, at, &items[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *sealed) openOne(ctx context.Context, at Place, it *Item) error {
	value := it.Sealed
	if len(value) == 0 {
		value = []byte(it.Text)
	}
	plain, err := s.by.Open(ctx, at.Tenant, value, bound(at, it.ID))
	if err != nil {
		return sealing("open item "+it.ID, err)
	}
	if len(it.Sealed) == 0 {
		return nil
	}
	var said secret
	if err := json.Unmarshal(plain, &said); err != nil {
		return fmt.Errorf("decode item %s: %w", it.ID, err)
	}
	it.Text, it.Source, it.Vector, it.Sealed = said.Text, said.Source, said.Vector, nil
	return nil
}

// readable is a sealed store whose pages are without the items that open for no process, which it counts.
type readable struct {
	*sealed

	leftOut int
}

// Query implements Reader.
func (r *readable) Query(ctx context.Context, at Place, q Query) (Page, error) {
	page, err := r.Store.Query(ctx, at, q)
	if err != nil {
		return page, err
	}
	opened := page.Items[:0]
	for i := range page.Items {
		switch err := r.openOne(ctx, at, &page.Items[i]); {
		case errors.Is(err, record.ErrUnreadable):
			r.leftOut++
		case err != nil:
			return Page{}, err
		default:
			opened = append(opened, page.Items[i])
		}
	}
	page.Items = opened
	return page, nil
}

// Read implements Reader.
func (s *sealed) Read(ctx context.Context, at Place, ids []string) ([]Item, error) {
	items, err := s.Store.Read(ctx, at, ids)
	if err != nil {
		return nil, err
	}
	return items, s.open(ctx, at, items)
}

// Query implements Reader.
func (s *sealed) Query(ctx context.Context, at Place, q Query) (Page, error) {
	page, err := s.Store.Query(ctx, at, q)
	if err != nil {
		return page, err
	}
	return page, s.open(ctx, at, page.Items)
}

// Search implements Reader.
func (s *sealed) Search(ctx context.Context, at Place, q Search) (Found, error) {
	q, err := q.Check(at)
	if err != nil {
		return Found{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, sealedTimeout, fmt.Errorf("%w: the sealed items were not opened within %v", ErrUnavailable, sealedTimeout))
	defer cancel()
	from := &readable{sealed: s}
	found, err := ScanAll(ctx, from, at, &q, MaxSealedScan)
	if from.leftOut > 0 {
		found.Degraded = fmt.Sprintf("items that cannot be read were left out (%d): their key was destroyed, they were changed, or they are in the clear where that is refused", from.leftOut)
	}
	return found, err
}
