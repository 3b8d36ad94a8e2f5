package runlogs

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

// everyLog matches the logs of all runs.
const everyLog = "runs.*.*.log"

// runOfLog is the run whose log has a subject.
func runOfLog(subject string) (run messages.Ref, ok bool) {
	t := strings.Split(subject, ".")
	if len(t) != 4 {
		return messages.Ref{}, false
	}
	run = messages.Ref{Tenant: t[1], Run: t[2]}
	return run, run.Check() == nil
}

// Runs yields every run that has a log, in pages from the stream's leader. A run that begins or is purged meanwhile
// may be missed. An error ends it.
func (st *Store) Runs(ctx context.Context) iter.Seq2[messages.Ref, error] {
	return func(yield func(messages.Ref, error) bool) {
		for run, err := range st.bus.Partitions(bus.StreamRuns).Runs(ctx, everyLog) {
			if err != nil {
				yield(messages.Ref{}, fmt.Errorf("list runs: %w", err))
				return
			}
			if !yield(run, nil) {
				return
			}
		}
	}
}
