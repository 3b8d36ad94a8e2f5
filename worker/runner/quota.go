package runner

import (
	"context"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/agent"
)

// Quotas hold back runs of tenants that use more than they were granted. Safe for concurrent use.
type Quotas interface {
	// HoldStart is the park of a task that may not begin yet; nil: it may. published is when the task was stored.
	HoldStart(ctx context.Context, run messages.Ref, published, now time.Time) (*messages.Parked, error)
	// HoldCall is the park of a run that may not make its next model call yet; nil: it may.
	HoldCall(ctx context.Context, run messages.Ref, now time.Time) (*messages.Parked, error)
}

// unknownHold is how long a run waits when nobody knows what its tenant has spent.
const unknownHold = time.Minute

// holdStart parks a run whose tenant begins too many, before anything else is done. When nobody can say, it begins: a
// share is not worth a task.
func (x *execution) holdStart(ctx context.Context, published time.Time) {
	if x.cfg.Quotas == nil {
		return
	}
	hold, err := x.cfg.Quotas.HoldStart(ctx, x.run, published, x.now())
	if err != nil {
		x.cfg.Log.WarnContext(ctx, "a task begins although its tenant's rate is unknown", "tenant", x.run.Tenant, "task_id", x.run.Run, "err", err)
		return
	}
	x.hold = hold
}

// holdCall parks a run whose tenant has spent its ceiling. When nobody can say what was spent, it waits a while: money is.
func (x *execution) holdCall(ctx context.Context) bool {
	if x.cfg.Quotas == nil {
		return false
	}
	hold, err := x.cfg.Quotas.HoldCall(ctx, x.run, x.now())
	if err != nil {
		x.cfg.Log.WarnContext(ctx, "a run waits because it is unknown what its tenant has spent", "tenant", x.run.Tenant, "task_id", x.run.Run, "err", err)
		until := x.now().Add(unknownHold)
		hold = &messages.Parked{Reason: messages.ParkQuota, Until: &until, Question: "it is unknown what the tenant has spent"}
	}
	x.hold = hold
	return hold != nil
}

// held is the park that takes the place of an action, if the run is to be held back. An end passes: it uses nothing.
func (x *execution) held(s *agent.State, next agent.Action) *agent.Park {
	if _, ends := next.(*agent.Finish); ends || x.hold == nil {
		return nil
	}
	untilEnd(s, x.hold)
	return &agent.Park{Parked: *x.hold}
}
