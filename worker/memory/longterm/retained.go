package longterm

import (
	"context"
	"time"
)

// Retained returns a store that holds what is written no longer than most says for its place, counted from when an item was created, or from the
// write if that is earlier. It only shortens what the writer asks for; 0: as long as that. What was written before is held as long as it was then.
func Retained(s Store, most func(Place) time.Duration) Store { return &retained{s, most} }

type retained struct {
	Store

	most func(Place) time.Duration
}

// Write implements Writer.
func (r *retained) Write(ctx context.Context, at Place, items []Item) error {
	most := r.most(at)
	if most <= 0 {
		return r.Store.Write(ctx, at, items)
	}
	now, kept := time.Now(), make([]Item, len(items))
	copy(kept, items)
	for i := range kept {
		it, began := &kept[i], now
		if !it.Created.IsZero() && it.Created.Before(now) {
			began = it.Created
		}
		if end := began.Add(most); it.Expires.IsZero() || end.Before(it.Expires) {
			it.Expires = end
		}
	}
	return r.Store.Write(ctx, at, kept)
}
