package runs

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// below is a run below another one, to which it delegated.
type below struct {
	Depth int `json:"depth"` // 1: a child
	*control.RunSummary
}

// maxBelow is how many runs below its own a card shows.
const maxBelow = 100

// beforeSubmit is how much earlier than its parent a child may seem to have been queued: clocks differ.
const beforeSubmit = time.Hour

// runsBelow lists the runs below that of a card, each before those below it, and reports whether there are more. It shows what it has
// found when ctx ends, or a list fails.
func runsBelow(ctx context.Context, client *dispatcher.Client, k *card) (found []below, more bool) {
	var since time.Time
	if k.Run != nil && k.Run.Queued != nil {
		since = k.Run.Queued.Add(-beforeSubmit)
	}
	var add func(id string, depth int)
	add = func(id string, depth int) {
		list, err := client.Runs().List(ctx, dispatcher.RunFilter{Tenant: k.Tenant, Parent: id, Since: since, Limit: maxBelow})
		if err != nil {
			more = true
			return
		}
		more = more || list.Next != "" || list.Behind > 0
		for _, r := range slices.Backward(list.Runs) { // the oldest first
			if len(found) == maxBelow {
				more = true
				return
			}
			found = append(found, below{depth, r})
			if depth < messages.MaxDelegateDepth {
				add(r.ID, depth+1)
			}
		}
	}
	add(k.ID, 1)
	return found, more
}

// belowRows is a row for each run below, with a › for each level that it is below.
func (k *card) belowRows() []cardRow {
	rows := make([]cardRow, 0, len(k.Below)+1)
	for _, r := range k.Below {
		text := []string{strings.Repeat("›", r.Depth), r.ID, string(r.Status)}
		if r.Agent != "" {
			text = append(text, "agent "+r.Agent)
		}
		if r.Cost != nil {
			text = append(text, messages.Money(*r.Cost))
		}
		rows = append(rows, cardRow{"below", strings.Join(text, " ")})
	}
	if k.More {
		rows = append(rows, cardRow{"below", "and more: see longshore list --parent ID"})
	}
	return rows
}
