package events

import (
	"context"
	"fmt"
	"iter"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

// FeedRun yields what EVENTS holds of a run now, in the order it was stored. Of what was stored a moment ago the newest
// may be missing. An error ends it.
func (st *Store) FeedRun(ctx context.Context, run messages.Ref) iter.Seq2[Fed, error] {
	return func(yield func(Fed, error) bool) {
		if err := run.Check(); err != nil {
			yield(Fed{}, err)
			return
		}
		p := bus.Page{Seq: 1, Next: run.EventFilter(), Batch: bus.NextPages, Bytes: bus.PageBytes}
		for m, err := range st.of(run).ScanPages(ctx, p) {
			if err != nil {
				yield(Fed{}, fmt.Errorf("read events of %s: %w", run, err))
				return
			}
			if !yield(Fed{Position: m.Seq, Seq: m.Seq, Subject: m.Subject, Time: m.Time, Data: m.Data, bus: st.bus}, nil) {
				return
			}
		}
	}
}
