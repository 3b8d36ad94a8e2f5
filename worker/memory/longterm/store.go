package longterm

import (
	"context"
	"time"
)

// Store keeps items. Safe for concurrent use. Package longtermtest checks what is promised here, of the interfaces that it is made of too.
//
// An error is a *messages.FieldError for a mistake in the input, a *QuotaError, or wraps ErrUnavailable or ErrStorageFull.
type Store interface {
	Reader
	Writer
	Keeper
}

// Reader finds items.
type Reader interface {
	// Read returns the items with the given ids, in their order, without those that are not kept.
	Read(ctx context.Context, at Place, ids []string) ([]Item, error)
	// Query returns the items that pass a filter, the newest first.
	Query(ctx context.Context, at Place, q Query) (Page, error)
	// Search returns the items that fit best, the best first.
	Search(ctx context.Context, at Place, s Search) (Found, error)
}

// Writer changes what is kept.
type Writer interface {
	// Write keeps items, at most MaxBatch. An item whose id is known replaces that one, so that the same write again changes nothing.
	Write(ctx context.Context, at Place, items []Item) error
	// Delete removes items and returns how many. It may have removed some when it fails; call it again.
	Delete(ctx context.Context, at Place, d Deletion) (int, error)
}

// Keeper is what those who run a store need.
type Keeper interface {
	// Features says what this store can do.
	Features() Features
	// Stats returns what a tenant has, what has expired and was not swept included.
	Stats(ctx context.Context, tenant string) (Stats, error)
	// Sweep removes items of all tenants that have expired, so many at most, and returns how many.
	Sweep(ctx context.Context, most int) (int, error)
}

// Place is the collection of a tenant that a call is about. A tenant's collections come to be with their first item.
type Place struct {
	Tenant     string `json:"tenant"`
	Collection string `json:"collection"`
}

// Features are what an implementation has.
type Features struct {
	Kind        string // such as "sqlite"
	Durable     bool   // what was written survives the process
	Shared      bool   // many processes may use it at once
	TextIndex   bool   // words are looked up; otherwise a search reads what passes its filter
	VectorIndex bool   // vectors are looked up; otherwise a search reads what passes its filter
	Readable    bool   // the store can read the texts: false for a sealed one
	// MaxScan is how many items a search without an index compares at most. 0: any number.
	MaxScan int
}

// Page is a part of an answer.
type Page struct {
	Items []Item
	Next  string // Cursor of the next page; empty at the end
}

// Hit is an item that was found.
type Hit struct {
	Item

	Score float64 // above 0; comparable within one answer only
}

// Found is the answer to a search.
type Found struct {
	Hits []Hit
	// Degraded says what the search had to leave out, such as vectors; empty: nothing.
	Degraded string
}

// Stats are what a tenant has.
type Stats struct {
	Collections []CollectionStats // by name
	Items       int64
	Bytes       int64
}

// CollectionStats are what a collection has.
type CollectionStats struct {
	Name  string
	Items int64
	Bytes int64 // as Item.Size counts
}

// Limits bound what a tenant may keep. 0: no limit.
type Limits struct {
	Items int64
	Bytes int64 // as Item.Size counts
}

// DefaultTimeout bounds each call of a store whose configuration says nothing else.
const DefaultTimeout = 5 * time.Second

// Add adds a collection to what a tenant has.
func (s *Stats) Add(c CollectionStats) {
	s.Collections = append(s.Collections, c)
	s.Items += c.Items
	s.Bytes += c.Bytes
}
