package taskqueue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages/queue"
)

// Depth is what waits in a lane.
type Depth struct {
	queue.Lane
	Queued   int
	InFlight int
	Oldest   time.Time // when the first of the queued ones was stored; zero: none, or it was not asked
}

// Depths are the lanes with tasks, the fullest first. The age is asked of the n fullest, and of those n others from which
// no worker has taken for longest: it costs a request each.
func (tq *Queue) Depths(ctx context.Context, n int) ([]Depth, error) {
	parts, err := tq.withUnmade(ctx)
	if err != nil {
		return nil, err
	}
	all := slices.DeleteFunc(together(parts), func(s whole) bool { return s.Queued+s.InFlight == 0 })
	slices.SortFunc(all, func(x, y whole) int {
		return cmp.Or(cmp.Compare(y.Queued, x.Queued), cmp.Compare(y.InFlight, x.InFlight), cmp.Compare(x.Lane.String(), y.Lane.String()))
	})
	ask := map[queue.Lane]bool{}
	starved := slices.Clone(all[min(n, len(all)):])
	slices.SortFunc(starved, func(x, y whole) int { return x.Active.Compare(y.Active) })
	for _, s := range slices.Concat(all[:min(n, len(all))], starved[:min(n, len(starved))]) {
		ask[s.Lane] = s.Queued > 0
	}
	depths := make([]Depth, len(all))
	for i := range all {
		s := &all[i]
		depths[i] = Depth{Lane: s.Lane, Queued: s.Queued, InFlight: s.InFlight}
		if !ask[s.Lane] {
			continue
		}
		at, ok, err := tq.oldest(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("look at lane %s: %w", s.Lane, err)
		}
		if ok {
			depths[i].Oldest = at
		}
	}
	return depths, nil
}
