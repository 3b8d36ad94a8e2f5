package dispatcher

import (
	"context"
	"iter"

	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/memory"
)

// Errors about long-term memory.
var (
	ErrNoMemory   = control.ErrNoMemory
	ErrNoItem     = control.ErrNoItem
	ErrMemoryAway = control.ErrMemoryAway
	ErrMemoryFull = control.ErrMemoryFull
)

// Collections returns what a tenant has in long-term memory, by name, a thousand collections at most.
func (of Memory) Collections(ctx context.Context, tenant string) (*memory.Collections, error) {
	return ask[memory.Collections](ctx, of.client, memory.SubjectCollections, memory.CollectionsRequest{Tenant: tenant})
}

// List returns a page of the items of a collection, the newest first.
func (of Memory) List(ctx context.Context, r memory.ListRequest) (*memory.Page, error) {
	return ask[memory.Page](ctx, of.client, memory.SubjectList, r)
}

// All yields the items of a collection from r.After on, the newest first, a page of r.Limit a request. It ends with the first error.
func (of Memory) All(ctx context.Context, r memory.ListRequest) iter.Seq2[*memory.Item, error] {
	return func(yield func(*memory.Item, error) bool) {
		for {
			page, err := of.List(ctx, r)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Items {
				if !yield(&page.Items[i], nil) {
					return
				}
			}
			if r.After = page.Next; r.After == "" {
				return
			}
		}
	}
}

// Get returns an item. ErrNoItem: the collection has none with this id.
func (of Memory) Get(ctx context.Context, tenant, collection, id string) (*memory.Item, error) {
	return ask[memory.Item](ctx, of.client, memory.SubjectGet, memory.ItemRequest{Tenant: tenant, Name: collection, ID: id})
}

// Search returns the items of a collection that fit best, the best first.
func (of Memory) Search(ctx context.Context, r memory.SearchRequest) (*memory.Found, error) {
	return ask[memory.Found](ctx, of.client, memory.SubjectSearch, r)
}

// Put stores items as a whole or not at all, in place of those with their ids; the same write again changes nothing. ErrMemoryFull: the
// tenant would have more than it may.
func (of Memory) Put(ctx context.Context, r memory.PutRequest) (*memory.PutReply, error) {
	return ask[memory.PutReply](ctx, of.client, memory.SubjectPut, r)
}

// Delete removes items of a collection and returns how many there were. It may have removed some when it fails; call it again.
func (of Memory) Delete(ctx context.Context, r memory.DeleteRequest) (int, error) {
	reply, err := ask[memory.DeleteReply](ctx, of.client, memory.SubjectDelete, r)
	if err != nil {
		return 0, err
	}
	return reply.Deleted, nil
}
