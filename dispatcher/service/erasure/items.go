package erasure

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/erasure"
	"github.com/longshore-run/longshore/messages/memory"
)

const itemsAtOnce = 500

// items are the ids of the items of long-term memory that are of a session, about a subject, or were kept by the runs of a page, by collection. What
// names a session or a subject is on the last page; items of a whole tenant are not looked for one by one.
func (e *Erasure) items(ctx context.Context, s *erasure.Scope, page *erasure.Kept) (map[string][]string, error) {
	last := page.Next == ""
	if e.cfg.Memory == nil || s.Whole() || len(page.Runs) == 0 && !last {
		return nil, nil
	}
	all, err := e.cfg.Memory.Collections(ctx, s.Tenant)
	if err != nil {
		return nil, err
	}
	found := map[string][]string{}
	for _, c := range all.Collections {
		r := memory.ListRequest{Tenant: s.Tenant, Name: c.Name, Limit: itemsAtOnce}
		for next := "first"; next != ""; next = r.After {
			list, err := e.cfg.Memory.List(ctx, &r)
			if err != nil && !errors.Is(err, control.ErrMemoryAway) { // what a destroyed key has encrypted cannot be read
				page.Left = append(page.Left, fmt.Sprintf("items of collection %s that name no %s: they cannot be read", c.Name, kind(s)))
				break
			}
			if err != nil {
				return nil, err
			}
			for i := range list.Items {
				it := &list.Items[i]
				named := last && (s.Session != "" && it.Session == s.Session || s.Subject != "" && it.Subject == s.Subject)
				if named || it.Source.Run != "" && slices.Contains(page.Runs, it.Source.Run) {
					found[c.Name] = append(found[c.Name], it.ID)
				}
			}
			r.After = list.Next
		}
	}
	return found, nil
}

// eraseItems removes them, and of a whole tenant all on the last page.
func (e *Erasure) eraseItems(ctx context.Context, s *erasure.Scope, page *erasure.Kept) error {
	if e.cfg.Memory == nil {
		return nil
	}
	found, err := e.items(ctx, s, page)
	if err != nil {
		return err
	}
	for collection, ids := range found {
		for some := range slices.Chunk(ids, itemsAtOnce) {
			n, err := e.cfg.Memory.Delete(ctx, s.Tenant, collection, some)
			page.Items += int64(n)
			if err != nil {
				return err
			}
		}
	}
	if page.Next != "" {
		return nil
	}
	n, err := e.cfg.Memory.Erase(ctx, s.Tenant, memory.Filter{Session: s.Session, Subject: s.Subject})
	page.Items += int64(n)
	return err
}

func kind(s *erasure.Scope) string {
	if s.Session != "" {
		return "session"
	}
	return "subject"
}
