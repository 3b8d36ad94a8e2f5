package runlogs

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

// Runs yields every run that has a log, in pages from the stream's leader. A run that begins or is purged meanwhile
// may be missed. An error ends it.
func (st *Store) Runs(ctx context.Context) iter.Seq2[messages.Ref, error] {
	return func(yield func(messages.Ref, error) bool) {
		for subject, err := range st.bus.Stream(bus.StreamRuns).Subjects(ctx, "runs.*.*.log") {
			if err != nil {
				yield(messages.Ref{}, fmt.Errorf("list runs: %w", err))
				return
			}
			t := strings.Split(subject, ".")
			if run := (messages.Ref{Tenant: t[1], Run: t[2]}); run.Check() == nil && !yield(run, nil) {
				return
			}
		}
	}
}
