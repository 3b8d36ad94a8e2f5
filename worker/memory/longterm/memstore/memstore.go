// Package memstore keeps long-term memory in the process, for tests and for programs that embed an agent: nothing outlives it.
package memstore

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/worker/memory/longterm"
)

// Config is fixed for the life of a Store.
type Config struct {
	Limits longterm.Limits
	Now    func() time.Time // The clock. Default: the system's.
}

// Store is a longterm.Store of one process.
type Store struct {
	cfg Config

	mu     sync.Mutex
	places map[longterm.Place]map[string]longterm.Item
}

var _ longterm.Store = (*Store)(nil)

// New returns an empty Store.
func New(cfg Config) *Store {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Store{cfg: cfg, places: map[longterm.Place]map[string]longterm.Item{}}
}

// Features implements longterm.Keeper.
func (*Store) Features() longterm.Features { return longterm.Features{Kind: "memory", Readable: true} }

// Write implements longterm.Writer.
func (st *Store) Write(ctx context.Context, at longterm.Place, items []longterm.Item) error {
	now := st.cfg.Now()
	if err := at.Check(); err != nil {
		return err
	}
	kept, err := longterm.CheckItems(items, now)
	if err != nil || len(kept) == 0 {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	err = st.fits(at, kept)
	if err != nil {
		st.sweep(now, len(items), at.Tenant)
		if err = st.fits(at, kept); err != nil {
			return err
		}
	}
	in := st.places[at]
	if in == nil {
		in = map[string]longterm.Item{}
		st.places[at] = in
	}
	for i := range kept {
		in[kept[i].ID] = kept[i]
	}
	return nil
}

// fits returns a *longterm.QuotaError if a write is too much. The caller holds the lock.
func (st *Store) fits(at longterm.Place, items []longterm.Item) error {
	s := st.stats(at.Tenant)
	was := longterm.CollectionStats{Items: s.Items, Bytes: s.Bytes}
	would := was
	for i := range items {
		if old, ok := st.places[at][items[i].ID]; ok {
			would.Items--
			would.Bytes -= old.Size()
		}
		would.Items++
		would.Bytes += items[i].Size()
	}
	return st.cfg.Limits.Exceeded(at.Tenant, was, would)
}

// Read implements longterm.Reader.
func (st *Store) Read(ctx context.Context, at longterm.Place, ids []string) ([]longterm.Item, error) {
	if err := at.Check(); err != nil {
		return nil, err
	}
	if err := longterm.CheckIDs(ids); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	now := st.cfg.Now()
	var out []longterm.Item
	for _, id := range ids {
		if it, ok := st.places[at][id]; ok && !it.Ended(now) {
			out = append(out, it.Clone())
		}
	}
	return out, nil
}

// Query implements longterm.Reader.
func (st *Store) Query(ctx context.Context, at longterm.Place, q longterm.Query) (longterm.Page, error) {
	q, after, err := q.Check(at)
	if err != nil {
		return longterm.Page{}, err
	}
	if ctx.Err() != nil {
		return longterm.Page{}, context.Cause(ctx)
	}
	var fit []longterm.Item
	now := st.cfg.Now()
	for _, it := range st.all(at) {
		if !it.Ended(now) && q.Passes(&it) && after.After(&it) {
			fit = append(fit, it)
		}
	}
	slices.SortFunc(fit, func(a, b longterm.Item) int { return longterm.Compare(&a, &b) })
	return longterm.MakePage(at, &q, fit), nil
}

// all are copies of the items of a place.
func (st *Store) all(at longterm.Place) []longterm.Item {
	st.mu.Lock()
	defer st.mu.Unlock()
	out := make([]longterm.Item, 0, len(st.places[at]))
	for _, it := range st.places[at] {
		out = append(out, it.Clone())
	}
	return out
}

// Search implements longterm.Reader.
func (st *Store) Search(ctx context.Context, at longterm.Place, s longterm.Search) (longterm.Found, error) {
	s, err := s.Check(at)
	if err != nil {
		return longterm.Found{}, err
	}
	if ctx.Err() != nil {
		return longterm.Found{}, context.Cause(ctx)
	}
	ranker, now, byID := longterm.NewRanker(&s), st.cfg.Now(), map[string]longterm.Item{}
	for _, it := range st.all(at) {
		if !it.Ended(now) && s.Passes(&it) {
			ranker.Add(&it)
			byID[it.ID] = it
		}
	}
	var found longterm.Found
	for _, best := range ranker.Best() {
		found.Hits = append(found.Hits, longterm.Hit{Item: byID[best.ID], Score: best.Score})
	}
	return found, nil
}

// Delete implements longterm.Writer.
func (st *Store) Delete(ctx context.Context, at longterm.Place, d longterm.Deletion) (int, error) {
	d, err := d.Check(at)
	if err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.remove(-1, func(in longterm.Place, it *longterm.Item) bool {
		return in.Tenant == at.Tenant && (at.Collection == "" || in == at) && d.Means(it)
	}), nil
}

// remove removes items, so many at most unless most is negative. The caller holds the lock.
func (st *Store) remove(most int, which func(longterm.Place, *longterm.Item) bool) (n int) {
	for at, in := range st.places {
		for id, it := range in {
			if n != most && which(at, &it) {
				delete(in, id)
				n++
			}
		}
		if len(in) == 0 {
			delete(st.places, at)
		}
	}
	return n
}

// Stats implements longterm.Keeper.
func (st *Store) Stats(ctx context.Context, tenant string) (longterm.Stats, error) {
	if err := strict.CheckToken("tenant", tenant); err != nil {
		return longterm.Stats{}, err
	}
	if ctx.Err() != nil {
		return longterm.Stats{}, context.Cause(ctx)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.stats(tenant), nil
}

// stats is Stats for one who holds the lock.
func (st *Store) stats(tenant string) (s longterm.Stats) {
	places := slices.SortedFunc(maps.Keys(st.places), func(a, b longterm.Place) int { return strings.Compare(a.Collection, b.Collection) })
	for _, at := range places {
		if at.Tenant != tenant {
			continue
		}
		c := longterm.CollectionStats{Name: at.Collection}
		for _, it := range st.places[at] {
			c.Items++
			c.Bytes += it.Size()
		}
		s.Add(c)
	}
	return s
}

// Sweep implements longterm.Keeper.
func (st *Store) Sweep(ctx context.Context, most int) (int, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.sweep(st.cfg.Now(), max(most, 0), ""), nil
}

// sweep removes what has expired, of one tenant or of all. The caller holds the lock.
func (st *Store) sweep(now time.Time, most int, tenant string) int {
	return st.remove(most, func(at longterm.Place, it *longterm.Item) bool {
		return it.Ended(now) && (tenant == "" || at.Tenant == tenant)
	})
}
