// Package memory answers the requests about long-term memory.
package memory

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/memory"
	"github.com/longshore-run/longshore/messages/strict"
)

// Store is long-term memory as requests see it. Requests have passed their checks. What a store cannot do is
// control.ErrMemoryAway or control.ErrMemoryFull; a mistake in what it is asked is a *messages.FieldError.
type Store interface {
	Reader
	Writer
}

// Reader finds items.
type Reader interface {
	Collections(ctx context.Context, tenant string) (memory.Collections, error)
	List(ctx context.Context, r *memory.ListRequest) (memory.Page, error)
	// Get returns the items with the given ids, without those that are not kept.
	Get(ctx context.Context, tenant, collection string, ids []string) ([]memory.Item, error)
	Search(ctx context.Context, r *memory.SearchRequest) (memory.Found, error)
}

// Writer changes what is kept.
type Writer interface {
	// Put writes items as a whole or not at all. Those that are kept as they are stay untouched.
	Put(ctx context.Context, r *memory.PutRequest) (memory.PutReply, error)
	// Delete removes items and returns how many. It may have removed some when it fails.
	Delete(ctx context.Context, tenant, collection string, ids []string) (int, error)
	// Erase removes the items of all collections that pass a filter; an empty one passes all. It may have removed some when it fails.
	Erase(ctx context.Context, tenant string, f memory.Filter) (int, error)
}

// Config is fixed for the life of a Memory.
type Config struct {
	Store  Store // nil: there is none
	Room   request.Room
	Redact func(string) string      // takes secrets out of what is written; nil: nothing
	Rules  func(tenant string) Rule // of what is written; nil: all may be
}

// Rule is what the policies of the fleet and of a tenant let its memory hold of a text; false: nothing.
type Rule func(text string) (kept string, ok bool)

// Memory answers the requests about long-term memory.
type Memory struct{ cfg Config }

// New returns a Memory.
func New(cfg Config) *Memory {
	if cfg.Redact == nil {
		cfg.Redact = func(s string) string { return s }
	}
	if cfg.Rules == nil {
		cfg.Rules = func(string) Rule { return func(text string) (string, bool) { return text, true } }
	}
	return &Memory{cfg}
}

// Handlers are the requests about long-term memory.
func (m *Memory) Handlers() request.Handlers {
	return request.Handlers{
		memory.SubjectCollections: answer(m, m.collections),
		memory.SubjectList:        answer(m, m.list),
		memory.SubjectGet:         answer(m, m.get),
		memory.SubjectSearch:      answer(m, m.search),
		memory.SubjectPut:         answer(m, m.put),
		memory.SubjectDelete:      answer(m, m.remove),
	}
}

// checked is a request that checks itself.
type checked[T any] interface {
	*T
	Check() error
}

// answer reads and checks a request before it is answered. Without a store each is control.ErrNoMemory.
func answer[T any, R checked[T]](m *Memory, do func(context.Context, R) (any, error)) request.Handler {
	return request.Read(func(ctx context.Context, r T) (any, error) {
		if err := R(&r).Check(); err != nil {
			return nil, err
		}
		if m.cfg.Store == nil {
			return nil, control.ErrNoMemory
		}
		return do(ctx, &r)
	})
}

func (m *Memory) collections(ctx context.Context, r *memory.CollectionsRequest) (any, error) {
	all, err := m.cfg.Store.Collections(ctx, r.Tenant)
	if err != nil {
		return nil, err
	}
	if len(all.Collections) > memory.MaxCollections {
		all.Collections, all.More = all.Collections[:memory.MaxCollections], true
	}
	return all, nil
}

// list reads pages of the store until the answer has what was asked for, or a message has no room for more.
func (m *Memory) list(ctx context.Context, r *memory.ListRequest) (any, error) {
	out, room, left, most := memory.Page{Items: []memory.Item{}}, m.cfg.Room.Page(), r.Limit, pageOf(r.Whole)
	for left > 0 {
		r.Limit = min(left, most)
		page, err := m.cfg.Store.List(ctx, r)
		if err != nil {
			return nil, err
		}
		size := 0
		for i := range page.Items {
			if !r.Whole {
				page.Items[i].Brief()
			}
			size += sizeOf(&page.Items[i])
		}
		if size > room {
			switch {
			case len(out.Items) > 0:
				out.Next = r.After // the next request begins with this page
				return out, nil
			case len(page.Items) == 1:
				return nil, &messages.FieldError{Field: "name", Reason: "has an item that is larger than a message may be: raise max_payload of the NATS server"}
			}
			most = len(page.Items) / 2
			continue
		}
		room, left, r.After = room-size, left-len(page.Items), page.Next
		out.Items, out.Next = append(out.Items, page.Items...), page.Next
		if page.Next == "" {
			break
		}
	}
	return out, nil
}

// pageOf is how many items are read at once.
func pageOf(whole bool) int {
	if whole {
		return 4 // of 64 KiB, and as much again
	}
	return memory.DefaultList
}

// sizeOf is how many bytes an item has in an answer.
func sizeOf(v any) int {
	data, err := json.Marshal(v)
	if err != nil {
		return 0
	}
	return len(data) + 1
}

func (m *Memory) get(ctx context.Context, r *memory.ItemRequest) (any, error) {
	items, err := m.cfg.Store.Get(ctx, r.Tenant, r.Name, []string{r.ID})
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, control.ErrNoItem
	}
	return items[0], nil
}

// search answers with the best hits, as many as a message has room for.
func (m *Memory) search(ctx context.Context, r *memory.SearchRequest) (any, error) {
	found, err := m.cfg.Store.Search(ctx, r)
	if err != nil {
		return nil, err
	}
	room := m.cfg.Room.Page()
	for i := range found.Hits {
		if room -= sizeOf(&found.Hits[i]); room < 0 {
			found.Hits, found.More = found.Hits[:i], true
			break
		}
	}
	return found, nil
}

func (m *Memory) put(ctx context.Context, r *memory.PutRequest) (any, error) {
	rule := m.cfg.Rules(r.Tenant)
	for i := range r.Items {
		it := &r.Items[i]
		if it.Cut {
			return nil, &messages.FieldError{Field: "items", Reason: "holds the item " + it.ID + ", whose text is cut: read it whole"}
		}
		if err := strict.Under(fmt.Sprintf("items[%d]", i), m.judge(rule, it)); err != nil {
			return nil, err
		}
		it.Model = ""
	}
	return m.cfg.Store.Put(ctx, r)
}

func (m *Memory) remove(ctx context.Context, r *memory.DeleteRequest) (any, error) {
	n, err := m.cfg.Store.Delete(ctx, r.Tenant, r.Name, r.IDs)
	if err != nil {
		return nil, err
	}
	return memory.DeleteReply{Deleted: n}, nil
}
