package longterm

import (
	"errors"
	"fmt"
)

// What a store may be unable to do.
var (
	// ErrUnavailable means that the store did not answer in time, or not at all. The call may be made again.
	ErrUnavailable = errors.New("long-term memory is not available")
	// ErrStorageFull means that the store has no space left. Nothing was written; reads continue.
	ErrStorageFull = errors.New("long-term memory has no space left")
)

// QuotaError says that a tenant has as much as it may. Nothing was written.
type QuotaError struct {
	Tenant string
	What   string // "items" or "bytes"
	Limit  int64
	Would  int64 // what the tenant would have
}

func (e *QuotaError) Error() string {
	return fmt.Sprintf("the long-term memory of tenant %s is full: it would have %d %s, and may have %d; delete some, or let them expire",
		e.Tenant, e.Would, e.What, e.Limit)
}

// Exceeded returns a *QuotaError if a tenant would have more than it may and more than it had; nil otherwise.
func (l Limits) Exceeded(tenant string, was, would CollectionStats) error {
	if l.Items > 0 && would.Items > l.Items && would.Items > was.Items {
		return &QuotaError{tenant, "items", l.Items, would.Items}
	}
	if l.Bytes > 0 && would.Bytes > l.Bytes && would.Bytes > was.Bytes {
		return &QuotaError{tenant, "bytes", l.Bytes, would.Bytes}
	}
	return nil
}

// TooManyError says that a search would have to compare more items than its store compares for one.
type TooManyError struct {
	Max int
}

func (e *TooManyError) Error() string {
	return fmt.Sprintf("the search would compare more than %d items one by one; narrow its filter, or use a store with an index for it", e.Max)
}
