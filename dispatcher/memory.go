package dispatcher

import (
	"context"
	"errors"
	"iter"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/erasure"
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

var errPages = errors.New("the dispatcher answers with a page that was read before")

// Find yields what is kept of a tenant, a conversation or a person, a page for each request. It ends with the first error.
func (of Data) Find(ctx context.Context, s erasure.Scope) iter.Seq2[*erasure.Kept, error] {
	return pagesOf(func(after string) (*erasure.Kept, error) {
		return ask[erasure.Kept](ctx, of.client, erasure.SubjectFind, erasure.FindRequest{Scope: s, After: after})
	})
}

// Erase erases it, and yields what was erased with each request. It ends with the first error, after which it may be made again from the
// beginning. Runs that have not ended stay.
func (of Data) Erase(ctx context.Context, r erasure.EraseRequest) iter.Seq2[*erasure.Kept, error] {
	return pagesOf(func(after string) (*erasure.Kept, error) {
		if after != "" {
			r.After = after
		}
		return ask[erasure.Kept](ctx, of.client, erasure.SubjectErase, r)
	})
}

func pagesOf(next func(after string) (*erasure.Kept, error)) iter.Seq2[*erasure.Kept, error] {
	return func(yield func(*erasure.Kept, error) bool) {
		for after := ""; ; {
			page, err := next(after)
			if err == nil && page.Next != "" && page.Next <= after {
				err = errPages
			}
			if !yield(page, err) || err != nil || page.Next == "" {
				return
			}
			after = page.Next
		}
	}
}

// Events yields the stored events of a run as they are, oldest first. It ends with the first error.
func (of Data) Events(ctx context.Context, run messages.Ref) iter.Seq2[control.StoredEvent, error] {
	return func(yield func(control.StoredEvent, error) bool) {
		req := control.EventsRequest{Tenant: run.Tenant, ID: run.Run}
		for more := true; more; {
			page, err := of.client.eventPage(ctx, &req)
			if err == nil && page.More && page.Next <= req.After {
				err = errPages
			}
			if err != nil {
				yield(control.StoredEvent{}, err)
				return
			}
			for _, e := range page.Events {
				if !yield(e, nil) {
					return
				}
			}
			req.After, more = page.Next, page.More
		}
	}
}
