// Package redisstore keeps long-term memory in Redis, for all workers of a fleet. What a tenant has is a handful of keys with the tenant
// in braces, so that a cluster has them in one slot and each change is one script, whole or not at all.
//
// It has no index of words or vectors: a search reads the items that pass its filter, MaxScan at most, and ranks them in the process. That suits
// thousands of items a collection; for more use PostgreSQL. Nothing here expires by Redis: its memory policy has to be noeviction or
// a volatile one, or it removes memories when it is full.
package redisstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/worker/memory/longterm"
)

// MaxScan is how many items a search compares at most.
const MaxScan = 10_000

const (
	prefix  = "longshore:memory:"
	tenants = prefix + "tenants" // those that have or had something
	batch   = 500                // items of one answer
)

// Config is fixed for the life of a Store.
type Config struct {
	Limits  longterm.Limits
	Timeout time.Duration    // Bounds each call. Default longterm.DefaultTimeout
	Now     func() time.Time // The clock. Default: the system's.
}

// Store is a longterm.Store in Redis.
type Store struct {
	rdb redis.UniversalClient
	cfg Config
}

var _ longterm.Store = (*Store)(nil)

// New returns a Store. The caller closes the client, which should have ContextTimeoutEnabled and no retries of its own.
func New(rdb redis.UniversalClient, cfg Config) *Store {
	if cfg.Timeout == 0 {
		cfg.Timeout = longterm.DefaultTimeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Store{rdb, cfg}
}

// Features implements longterm.Keeper.
func (*Store) Features() longterm.Features {
	return longterm.Features{Kind: "redis", Durable: true, Shared: true, Readable: true, MaxScan: MaxScan}
}

// keys of a tenant, in the order of the scripts.
func keys(tenant string) []string {
	base := prefix + "{" + tenant + "}:"
	return []string{base + "items", base + "about", base + "order", base + "expiries", base + "usage"}
}

// field is the name of an item among those of its tenant. No collection has a space in it.
func field(at longterm.Place, id string) string { return at.Collection + " " + id }

// place is where an item stands in the order of its collection: times are made positive, for they begin in 1900.
func place(collection string, created time.Time, id string) string {
	return fmt.Sprintf("%s %016x %s", collection, uint64(created.UnixMicro()+1<<62), id)
}

// begin bounds a call. Every error of a call goes through the function that it returns, which also ends the bound.
func (st *Store) begin(ctx context.Context) (bounded context.Context, end func(error) error, err error) {
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	bounded, cancel := context.WithTimeout(ctx, st.cfg.Timeout)
	return bounded, func(err error) error {
		defer cancel()
		return st.failure(ctx, err)
	}, nil
}

// failure says what an error of Redis means to a caller.
func (st *Store) failure(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, own := range []any{new(*longterm.QuotaError), new(*longterm.TooManyError)} {
		if errors.As(err, own) {
			return err
		}
	}
	text := err.Error()
	switch {
	case errors.Is(err, errBroken):
		return err
	case strings.HasPrefix(text, "OOM ") || strings.Contains(text, "-OOM ") || strings.Contains(text, "MISCONF "):
		return fmt.Errorf("%w: redis: %w", longterm.ErrStorageFull, err)
	case strings.HasPrefix(text, "WRONGTYPE ") || strings.HasPrefix(text, "NOPERM ") || strings.HasPrefix(text, "NOAUTH "):
		return fmt.Errorf("redis: %w", err)
	}
	return fmt.Errorf("%w: redis: %w", longterm.ErrUnavailable, err)
}

var errBroken = errors.New("redis: what is kept is not an item, or the reply is not one of the script's")

// Write implements longterm.Writer.
func (st *Store) Write(ctx context.Context, at longterm.Place, items []longterm.Item) error {
	if err := at.Check(); err != nil {
		return err
	}
	now := st.cfg.Now()
	kept, err := longterm.CheckItems(items, now)
	if err != nil || len(kept) == 0 {
		return err
	}
	args := []any{now.UnixMicro(), at.Collection, st.cfg.Limits.Items, st.cfg.Limits.Bytes, max(len(kept), batch)}
	for i := range kept {
		it := &kept[i]
		text, err := json.Marshal(it)
		if err != nil {
			return fmt.Errorf("encode item: %w", err)
		}
		expires := ""
		if !it.Expires.IsZero() {
			expires = strconv.FormatInt(it.Expires.UnixMicro(), 10)
		}
		args = append(args, field(at, it.ID), text, it.Size(), place(at.Collection, it.Created, it.ID), expires)
	}
	ctx, end, err := st.begin(ctx)
	if err != nil {
		return err
	}
	// Known before it has something: a sweep that finds nothing does no harm.
	if err := st.rdb.SAdd(ctx, tenants, at.Tenant).Err(); err != nil {
		return end(err)
	}
	reply, err := writeScript.Run(ctx, st.rdb, keys(at.Tenant), args...).StringSlice()
	if err != nil || len(reply) == 1 && reply[0] == "ok" {
		return end(err)
	}
	if len(reply) != 5 {
		return end(errBroken)
	}
	var n [4]int64 // items and bytes as they were, and as they would be
	for i, text := range reply[1:] {
		if n[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return end(errBroken)
		}
	}
	return end(st.cfg.Limits.Exceeded(at.Tenant, longterm.CollectionStats{Items: n[0], Bytes: n[1]}, longterm.CollectionStats{Items: n[2], Bytes: n[3]}))
}

// Read implements longterm.Reader.
func (st *Store) Read(ctx context.Context, at longterm.Place, ids []string) ([]longterm.Item, error) {
	if err := at.Check(); err != nil {
		return nil, err
	}
	if err := longterm.CheckIDs(ids); err != nil {
		return nil, err
	}
	ctx, end, err := st.begin(ctx)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	fields := make([]string, len(ids))
	for i, id := range ids {
		fields[i] = field(at, id)
	}
	items, err := st.get(ctx, at.Tenant, fields)
	if err != nil {
		return nil, end(err)
	}
	now, alive := st.cfg.Now(), []longterm.Item{}
	for i := range items {
		if !items[i].Ended(now) {
			alive = append(alive, items[i])
		}
	}
	return alive, end(nil)
}

// get returns the items of a tenant with some names, without those that are not there.
func (st *Store) get(ctx context.Context, tenant string, fields []string) (items []longterm.Item, err error) {
	if len(fields) == 0 {
		return nil, nil
	}
	values, err := st.rdb.HMGet(ctx, keys(tenant)[0], fields...).Result()
	if err != nil {
		return nil, err
	}
	for _, v := range values {
		text, ok := v.(string)
		if !ok {
			continue
		}
		var it longterm.Item
		if json.Unmarshal([]byte(text), &it) != nil {
			return nil, errBroken
		}
		items = append(items, it)
	}
	return items, nil
}

// scan calls look with the items of a collection, or of all of a tenant, in the order of pages, some at a time, until it returns false. The places
// are those of the items.
func (st *Store) scan(ctx context.Context, at longterm.Place, after longterm.Position, look func(item longterm.Item, of longterm.Place) bool) error {
	order := keys(at.Tenant)[2]
	by := &redis.ZRangeBy{Min: "-", Max: "+", Count: batch}
	if at.Collection != "" {
		by.Min, by.Max = "["+at.Collection+" ", "("+at.Collection+"!"
	}
	if after.ID != "" {
		by.Max = "(" + place(at.Collection, after.Created, after.ID)
	}
	for {
		members, err := st.rdb.ZRevRangeByLex(ctx, order, by).Result()
		if err != nil || len(members) == 0 {
			return err
		}
		fields, collections := make([]string, len(members)), map[string]string{}
		for i, m := range members {
			parts := strings.Split(m, " ")
			if len(parts) != 3 {
				return errBroken
			}
			fields[i] = parts[0] + " " + parts[2]
			collections[m] = parts[0]
		}
		items, err := st.get(ctx, at.Tenant, fields)
		if err != nil {
			return err
		}
		next := 0
		for _, m := range members { // one that was deleted meanwhile is not among the items
			if next < len(items) && place(collections[m], items[next].Created, items[next].ID) == m {
				if !look(items[next], longterm.Place{Tenant: at.Tenant, Collection: collections[m]}) {
					return nil
				}
				next++
			}
		}
		if by.Max = "(" + members[len(members)-1]; len(members) < batch {
			return nil
		}
	}
}

// Query implements longterm.Reader.
func (st *Store) Query(ctx context.Context, at longterm.Place, q longterm.Query) (longterm.Page, error) {
	q, after, err := q.Check(at)
	if err != nil {
		return longterm.Page{}, err
	}
	ctx, end, err := st.begin(ctx)
	if err != nil {
		return longterm.Page{}, err
	}
	now := st.cfg.Now()
	var items []longterm.Item
	err = st.scan(ctx, at, after, func(it longterm.Item, _ longterm.Place) bool {
		if !it.Ended(now) && q.Passes(&it) {
			items = append(items, it)
		}
		return len(items) <= q.Limit
	})
	if err != nil {
		return longterm.Page{}, end(err)
	}
	return longterm.MakePage(at, &q, items), end(nil)
}

// Search implements longterm.Reader.
func (st *Store) Search(ctx context.Context, at longterm.Place, s longterm.Search) (longterm.Found, error) {
	s, err := s.Check(at)
	if err != nil {
		return longterm.Found{}, err
	}
	bounded, end, err := st.begin(ctx)
	if err != nil {
		return longterm.Found{}, err
	}
	found, err := longterm.ScanAll(bounded, st, at, &s, MaxScan)
	return found, end(err)
}

// Delete implements longterm.Writer.
func (st *Store) Delete(ctx context.Context, at longterm.Place, d longterm.Deletion) (total int, err error) {
	d, err = d.Check(at)
	if err != nil {
		return 0, err
	}
	var fields []string
	for _, id := range d.IDs {
		fields = append(fields, field(at, id))
	}
	if len(d.IDs) == 0 {
		scanned, end, err := st.begin(ctx)
		if err != nil {
			return 0, err
		}
		err = st.scan(scanned, at, longterm.Position{}, func(it longterm.Item, of longterm.Place) bool {
			if d.Means(&it) {
				fields = append(fields, field(of, it.ID))
			}
			return true
		})
		if err = end(err); err != nil {
			return 0, err
		}
	}
	for some := range slices.Chunk(fields, batch) {
		bounded, end, err := st.begin(ctx)
		if err != nil {
			return total, err
		}
		n, err := deleteScript.Run(bounded, st.rdb, keys(at.Tenant), anys(some)...).Int()
		total += n
		if err = end(err); err != nil {
			return total, err
		}
	}
	return total, nil
}

func anys(texts []string) []any {
	out := make([]any, len(texts))
	for i, t := range texts {
		out[i] = t
	}
	return out
}

// Stats implements longterm.Keeper.
func (st *Store) Stats(ctx context.Context, tenant string) (s longterm.Stats, err error) {
	if err := strict.CheckToken("tenant", tenant); err != nil {
		return s, err
	}
	ctx, end, err := st.begin(ctx)
	if err != nil {
		return s, err
	}
	usage, err := st.rdb.HGetAll(ctx, keys(tenant)[4]).Result()
	if err != nil {
		return s, end(err)
	}
	byName := map[string]*longterm.CollectionStats{}
	for name, text := range usage {
		collection, what, _ := strings.Cut(name, " ")
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return s, end(errBroken)
		}
		c := byName[collection]
		if c == nil {
			c = &longterm.CollectionStats{Name: collection}
			byName[collection] = c
		}
		if what == "items" {
			c.Items = n
		} else {
			c.Bytes = n
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		s.Add(*byName[name])
	}
	return s, end(nil)
}

// Sweep implements longterm.Keeper.
func (st *Store) Sweep(ctx context.Context, most int) (total int, err error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	for cursor := uint64(0); ; {
		bounded, end, err := st.begin(ctx)
		if err != nil {
			return total, err
		}
		some, next, err := st.rdb.SScan(bounded, tenants, cursor, "", batch).Result()
		if err = end(err); err != nil {
			return total, err
		}
		for _, tenant := range some {
			if total >= most || !strict.ValidToken(tenant) {
				continue
			}
			bounded, end, err := st.begin(ctx)
			if err != nil {
				return total, err
			}
			n, err := sweepScript.Run(bounded, st.rdb, keys(tenant), st.cfg.Now().UnixMicro(), most-total).Int()
			total += n
			if err = end(err); err != nil {
				return total, err
			}
		}
		if cursor = next; cursor == 0 || total >= most {
			return total, nil
		}
	}
}
