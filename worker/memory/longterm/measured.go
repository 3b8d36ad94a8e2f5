package longterm

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// Measure counts the calls of a store.
func Measure(s Store) *Measured {
	m := &Measured{Store: s, calls: map[string]uint64{}, seconds: map[string]float64{}, failures: map[string]uint64{}}
	for _, kind := range []string{failedInput, failedQuota, failedUnavailable, failedFull, failedOther} {
		m.failures[kind] = 0 // so that it can be watched before the first one
	}
	for _, what := range []string{"write", "read", "query", "search", "delete", "sweep"} {
		m.calls[what], m.seconds[what] = 0, 0
	}
	return m
}

// Measured is a store that counts. Names of operations and of what happened are few.
type Measured struct {
	Store

	mu       sync.Mutex
	calls    map[string]uint64
	seconds  map[string]float64
	failures map[string]uint64
	counts   Counts
}

// Counts are what a Measured has seen.
type Counts struct {
	Hits, Misses uint64 // searches that found something, or nothing
	Degraded     uint64 // searches that had to leave something out
	Written      uint64 // items
	Bytes        uint64 // of them
	Deleted      uint64 // items
	Evicted      uint64 // items that had expired and were swept
}

// Failures of Measured.Failures.
const (
	failedInput       = "input"
	failedQuota       = "quota"
	failedUnavailable = "unavailable"
	failedFull        = "full"
	failedOther       = "other"
)

// done counts a call that began at a time.
func (m *Measured) done(what string, began time.Time, err error, count func(*Counts)) {
	took := time.Since(began).Seconds()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls[what]++
	m.seconds[what] += took
	count(&m.counts) // a failed one may have done a part
	if err == nil {
		return
	}
	kind := failedOther
	var input *messages.FieldError
	var quota *QuotaError
	switch {
	case errors.As(err, &input):
		kind = failedInput
	case errors.As(err, &quota):
		kind = failedQuota
	case errors.Is(err, ErrUnavailable):
		kind = failedUnavailable
	case errors.Is(err, ErrStorageFull):
		kind = failedFull
	}
	m.failures[kind]++
}

// Counts returns what was counted so far.
func (m *Measured) Counts() Counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts
}

// Calls returns how often each operation was called.
func (m *Measured) Calls() map[string]uint64 { return copied(m, m.calls) }

// Seconds returns how long the calls of each operation took together.
func (m *Measured) Seconds() map[string]float64 { return copied(m, m.seconds) }

// Failures returns how many calls failed, by why: input, quota, unavailable, full, or other.
func (m *Measured) Failures() map[string]uint64 { return copied(m, m.failures) }

func copied[T any](m *Measured, of map[string]T) map[string]T {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(of)
}

// Write implements Writer.
func (m *Measured) Write(ctx context.Context, at Place, items []Item) error {
	began := time.Now()
	err := m.Store.Write(ctx, at, items)
	m.done("write", began, err, func(c *Counts) {
		if err != nil {
			return
		}
		c.Written += uint64(len(items))
		for i := range items {
			c.Bytes += uint64(items[i].Size())
		}
	})
	return err
}

// Read implements Reader.
func (m *Measured) Read(ctx context.Context, at Place, ids []string) ([]Item, error) {
	began := time.Now()
	items, err := m.Store.Read(ctx, at, ids)
	m.done("read", began, err, func(*Counts) {})
	return items, err
}

// Query implements Reader.
func (m *Measured) Query(ctx context.Context, at Place, q Query) (Page, error) {
	began := time.Now()
	page, err := m.Store.Query(ctx, at, q)
	m.done("query", began, err, func(*Counts) {})
	return page, err
}

// Search implements Reader.
func (m *Measured) Search(ctx context.Context, at Place, s Search) (Found, error) {
	began := time.Now()
	found, err := m.Store.Search(ctx, at, s)
	m.done("search", began, err, func(c *Counts) {
		switch {
		case err != nil:
		case len(found.Hits) > 0:
			c.Hits++
		default:
			c.Misses++
		}
		if found.Degraded != "" {
			c.Degraded++
		}
	})
	return found, err
}

// Delete implements Writer.
func (m *Measured) Delete(ctx context.Context, at Place, d Deletion) (int, error) {
	began := time.Now()
	n, err := m.Store.Delete(ctx, at, d)
	m.done("delete", began, err, func(c *Counts) { c.Deleted += uint64(n) })
	return n, err
}

// Sweep implements Keeper.
func (m *Measured) Sweep(ctx context.Context, most int) (int, error) {
	began := time.Now()
	n, err := m.Store.Sweep(ctx, most)
	m.done("sweep", began, err, func(c *Counts) { c.Evicted += uint64(n) })
	return n, err
}
