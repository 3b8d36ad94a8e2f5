package kv

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// Memory is a Store of one process, for tests and for agents that run in one: nothing outlives it.
type Memory struct {
	limits Limits
	now    func() time.Time

	mu     sync.Mutex
	scopes map[Scope]*scope
}

var _ Store = (*Memory)(nil)

// scope is what is kept in one.
type scope struct {
	items    map[string]Item
	bytes    int64
	revision int64
	done     map[string]int64 // what calls returned
	order    []doneCall
}

type doneCall struct {
	call string
	at   time.Time
}

// NewMemory returns an empty Store; now is the clock, nil the system's.
func NewMemory(l Limits, now func() time.Time) *Memory {
	if now == nil {
		now = time.Now
	}
	return &Memory{limits: l, now: now, scopes: map[Scope]*scope{}}
}

// open returns a scope without what has expired. The caller holds the lock.
func (m *Memory) open(ctx context.Context, s Scope) (*scope, time.Time, error) {
	if ctx.Err() != nil {
		return nil, time.Time{}, context.Cause(ctx)
	}
	if err := s.Check(); err != nil {
		return nil, time.Time{}, err
	}
	now := m.now()
	in := m.scopes[s]
	if in == nil {
		in = &scope{items: map[string]Item{}, done: map[string]int64{}}
		m.scopes[s] = in
	}
	for key, item := range in.items {
		if !now.Before(item.Expires) {
			in.drop(key)
		}
	}
	for len(in.order) > 0 && (len(in.order) > CallsKept || now.Sub(in.order[0].at) > CallsFor) {
		delete(in.done, in.order[0].call)
		in.order = in.order[1:]
	}
	return in, now, nil
}

func (in *scope) drop(key string) {
	in.bytes -= int64(len(key) + len(in.items[key].Value))
	delete(in.items, key)
}

func (in *scope) remember(call string, returned int64, now time.Time) {
	if call != "" {
		in.done[call] = returned
		in.order = append(in.order, doneCall{call, now})
	}
}

var _ Eraser = (*Memory)(nil)

// Scopes implements Eraser.
func (m *Memory) Scopes(context.Context) iter.Seq2[Scope, error] {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := slices.Collect(maps.Keys(m.scopes))
	return func(yield func(Scope, error) bool) {
		for _, s := range kept {
			if s.Kind != messages.KVTenant && !yield(s, nil) {
				return
			}
		}
	}
}

// Erase implements Eraser.
func (m *Memory) Erase(ctx context.Context, s Scope) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.scopes, s)
	return nil
}

// Get implements Store.
func (m *Memory) Get(ctx context.Context, s Scope, key string) (Item, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	in, _, err := m.open(ctx, s)
	if err != nil {
		return Item{}, err
	}
	item, ok := in.items[key]
	if !ok {
		return Item{}, ErrNone
	}
	return item, nil
}

// Set implements Store.
func (m *Memory) Set(ctx context.Context, s Scope, w Write) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	in, now, err := m.open(ctx, s)
	if err != nil {
		return 0, err
	}
	if revision, done := in.done[w.Call]; done {
		return revision, nil
	}
	old, was := in.items[w.Key]
	if w.Expect != nil && *w.Expect != old.Revision {
		return 0, &ConflictError{w.Key, old.Revision}
	}
	bytes := in.bytes + int64(len(w.Key)+len(w.Value))
	if was {
		bytes -= int64(len(w.Key) + len(old.Value))
	}
	if !was && len(in.items) >= m.limits.Keys {
		return 0, m.limits.Full(QuotaKeys)
	}
	if bytes > m.limits.Bytes && bytes > in.bytes { // one that shrinks is let, after limits were lowered
		return 0, m.limits.Full(QuotaBytes)
	}
	if added := bytes - in.bytes; added > 0 && m.limits.TenantBytes > 0 && m.ofTenant(s.Tenant)+added > m.limits.TenantBytes {
		return 0, m.limits.Full(QuotaTenant)
	}
	in.revision++
	in.bytes = bytes
	in.items[w.Key] = Item{Value: w.Value, Revision: in.revision, Expires: now.Add(w.TTL)}
	in.remember(w.Call, in.revision, now)
	return in.revision, nil
}

// ofTenant is how many bytes the scopes of a tenant have. The caller holds the lock.
func (m *Memory) ofTenant(tenant string) (bytes int64) {
	for s, in := range m.scopes {
		if s.Tenant == tenant {
			bytes += in.bytes
		}
	}
	return bytes
}

// Delete implements Store.
func (m *Memory) Delete(ctx context.Context, s Scope, r Removal) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	in, now, err := m.open(ctx, s)
	if err != nil {
		return false, err
	}
	if returned, done := in.done[r.Call]; done {
		return returned > 0, nil
	}
	old, was := in.items[r.Key]
	if r.Expect != nil && *r.Expect != old.Revision {
		return false, &ConflictError{r.Key, old.Revision}
	}
	if !was {
		in.remember(r.Call, 0, now)
		return false, nil
	}
	in.drop(r.Key)
	in.remember(r.Call, 1, now)
	return true, nil
}

// List implements Store.
func (m *Memory) List(ctx context.Context, s Scope, q Query) (entries []Entry, more bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	in, _, err := m.open(ctx, s)
	if err != nil {
		return nil, false, err
	}
	for key, item := range in.items {
		if strings.HasPrefix(key, q.Prefix) && key > q.After {
			entries = append(entries, Entry{Key: key, Bytes: len(item.Value), Revision: item.Revision, Expires: item.Expires})
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Key, b.Key) })
	if len(entries) > q.Limit {
		return entries[:q.Limit], true, nil
	}
	return entries, false, nil
}
