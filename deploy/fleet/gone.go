package fleet

import (
	"context"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/tools/kv"
)

// gone reports whether a run has no log, or a session no run that waits, works or has a log: it was deleted, or the retention of all of
// its runs is over.
func gone(log runlog.Log, sessions runlog.Sessions) func(context.Context, kv.Scope) (bool, error) {
	return func(ctx context.Context, s kv.Scope) (bool, error) {
		runs := []string{s.Name}
		if s.Kind == messages.KVSession {
			session, _, err := sessions.Session(ctx, s.Tenant, s.Name)
			if err != nil || len(session.Runs) > 0 {
				return false, err
			}
			runs = session.Ended
		}
		for _, run := range runs {
			if _, ok, err := log.Last(ctx, messages.Ref{Tenant: s.Tenant, Run: run}); err != nil || ok {
				return false, err
			}
		}
		return true, nil
	}
}
