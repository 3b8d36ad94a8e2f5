// Package served answers what dispatchers are asked about long-term memory from a [longterm.Store]: it is the store of
// dispatcher/service/memory.
package served

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/memory"
	"github.com/longshore-run/longshore/worker/memory/longterm"
)

// Store answers requests. Safe for concurrent use.
type Store struct {
	store longterm.Store
	model string
}

// New returns a Store. Model is that of the embedder of the store, empty without one: texts that it gave a vector keep that.
func New(store longterm.Store, model string) *Store { return &Store{store, model} }

// told is an error as callers of a dispatcher know it.
func told(err error) error {
	var (
		quota *longterm.QuotaError
		many  *longterm.TooManyError
	)
	switch {
	case errors.As(err, &quota):
		return fmt.Errorf("%w: %w", control.ErrMemoryFull, err)
	case errors.As(err, &many):
		return &messages.FieldError{Field: "name", Reason: many.Error()}
	case errors.Is(err, longterm.ErrUnavailable):
		return control.ErrMemoryAway // why is for the operator, in the log
	case errors.Is(err, longterm.ErrStorageFull):
		return fmt.Errorf("%w: it has no space left", control.ErrMemoryAway)
	default:
		return err
	}
}

func filterOf(f memory.Filter) longterm.Filter {
	return longterm.Filter{Within: longterm.Scope{Agent: f.Agent, Session: f.Session, Subject: f.Subject}, Tags: f.Tags}
}

func travels(it *longterm.Item) memory.Item {
	return memory.Item{
		ID: it.ID, Agent: it.Scope.Agent, Session: it.Scope.Session, Subject: it.Scope.Subject, Text: it.Text, Fields: it.Fields, Tags: it.Tags,
		Created: it.Created, Expires: it.Expires, Model: it.Model,
		Source: memory.Source{Run: it.Source.Run, Step: it.Source.Step, Document: it.Source.Document, Part: it.Source.Position},
	}
}

func kept(it *memory.Item) longterm.Item {
	return longterm.Item{
		ID: it.ID, Scope: longterm.Scope{Agent: it.Agent, Session: it.Session, Subject: it.Subject}, Text: it.Text, Fields: it.Fields, Tags: it.Tags,
		Created: it.Created, Expires: it.Expires,
		Source: longterm.Source{Run: it.Source.Run, Step: it.Source.Step, Document: it.Source.Document, Position: it.Source.Part},
	}
}

func travel(items []longterm.Item) []memory.Item {
	out := make([]memory.Item, len(items))
	for i := range items {
		out[i] = travels(&items[i])
	}
	return out
}

// Collections returns what a tenant has.
func (s *Store) Collections(ctx context.Context, tenant string) (memory.Collections, error) {
	out := memory.Collections{Collections: []memory.Collection{}}
	stats, err := s.store.Stats(ctx, tenant)
	if err != nil {
		return out, told(err)
	}
	for _, c := range stats.Collections {
		out.Collections = append(out.Collections, memory.Collection{Name: c.Name, Items: c.Items, Bytes: c.Bytes})
	}
	out.Items, out.Bytes = stats.Items, stats.Bytes
	return out, nil
}

// List returns a page of a collection.
func (s *Store) List(ctx context.Context, r *memory.ListRequest) (memory.Page, error) {
	page, err := s.store.Query(ctx, place(r.Tenant, r.Name), longterm.Query{Filter: filterOf(r.Filter), Limit: r.Limit, Cursor: r.After})
	if err != nil {
		return memory.Page{}, told(named(err, "cursor", "after"))
	}
	return memory.Page{Items: travel(page.Items), Next: page.Next}, nil
}

// named gives a field of an error the name that it has in the request.
func named(err error, field, travels string) error {
	if f, ok := errors.AsType[*messages.FieldError](err); ok && f.Field == field {
		return &messages.FieldError{Field: travels, Reason: f.Reason}
	}
	return err
}

func place(tenant, collection string) longterm.Place {
	return longterm.Place{Tenant: tenant, Collection: collection}
}

// Get returns items by their ids.
func (s *Store) Get(ctx context.Context, tenant, collection string, ids []string) ([]memory.Item, error) {
	items, err := s.store.Read(ctx, place(tenant, collection), ids)
	return travel(items), told(err)
}

// Search returns the items that fit best.
func (s *Store) Search(ctx context.Context, r *memory.SearchRequest) (memory.Found, error) {
	found, err := s.store.Search(ctx, place(r.Tenant, r.Name), longterm.Search{Filter: filterOf(r.Filter), Text: r.Text, TopK: r.TopK})
	if err != nil {
		return memory.Found{}, told(err)
	}
	out := memory.Found{Hits: []memory.Hit{}, Degraded: found.Degraded}
	for i := range found.Hits {
		out.Hits = append(out.Hits, memory.Hit{Item: travels(&found.Hits[i].Item), Score: found.Hits[i].Score})
	}
	return out, nil
}

// Put writes the items that are not kept as they are. One whose text is unchanged keeps its vector, if the model made it.
func (s *Store) Put(ctx context.Context, r *memory.PutRequest) (memory.PutReply, error) {
	at := place(r.Tenant, r.Name)
	items, ids := make([]longterm.Item, len(r.Items)), make([]string, len(r.Items))
	for i := range r.Items {
		items[i], ids[i] = kept(&r.Items[i]), r.Items[i].ID
	}
	was, err := s.store.Read(ctx, at, ids)
	if err != nil {
		return memory.PutReply{}, told(named(err, "ids", "items"))
	}
	before := make(map[string]*longterm.Item, len(was))
	for i := range was {
		before[was[i].ID] = &was[i]
	}
	var (
		write []longterm.Item
		reply memory.PutReply
	)
	for i := range items {
		it := &items[i]
		old := before[it.ID]
		vectored := old != nil && old.Text == it.Text && old.Model == s.model
		if vectored && same(old, it) {
			reply.Unchanged++
			continue
		}
		if vectored {
			it.Vector, it.Model = old.Vector, old.Model
		}
		write = append(write, *it)
	}
	if len(write) > 0 {
		if err := s.store.Write(ctx, at, write); err != nil {
			return memory.PutReply{}, told(err)
		}
	}
	reply.Written = len(write)
	return reply, nil
}

// same reports whether a write would leave an item as it is. The time of its creation counts if the write names one.
func same(old, would *longterm.Item) bool {
	if !would.Created.IsZero() && !would.Created.Equal(old.Created) {
		return false
	}
	checked, err := longterm.CheckItems([]longterm.Item{*would}, old.Created)
	if err != nil {
		return false // the write says why
	}
	a, b := travels(old), travels(&checked[0])
	sameEnd := a.Expires.Equal(b.Expires)
	a.Created, a.Expires, a.Model, b.Model = b.Created, b.Expires, "", ""
	if len(a.Fields)+len(b.Fields) == 0 {
		a.Fields, b.Fields = nil, nil
	}
	if len(a.Tags)+len(b.Tags) == 0 {
		a.Tags, b.Tags = nil, nil
	}
	return sameEnd && reflect.DeepEqual(a, b)
}

// Delete removes items by their ids.
func (s *Store) Delete(ctx context.Context, tenant, collection string, ids []string) (int, error) {
	n, err := s.store.Delete(ctx, place(tenant, collection), longterm.Deletion{IDs: ids})
	return n, told(err)
}

// Erase removes the items of all collections that pass a filter; an empty one passes all.
func (s *Store) Erase(ctx context.Context, tenant string, f memory.Filter) (int, error) {
	d := longterm.Deletion{Filter: filterOf(f)}
	d.All = f.Agent == "" && f.Session == "" && f.Subject == "" && len(f.Tags) == 0
	n, err := s.store.Delete(ctx, place(tenant, ""), d)
	return n, told(err)
}
