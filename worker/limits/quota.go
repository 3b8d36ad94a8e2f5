package limits

import (
	"context"
	"log/slog"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
)

// Quotas say what tenants were granted, and used. Safe for concurrent use.
type Quotas interface {
	// HoldStart is the park of a task that may not begin yet; nil: it may. published is when the task was stored.
	HoldStart(ctx context.Context, run messages.Ref, published, now time.Time) (*record.Parked, error)
	// HoldCall is the park of a run that may not make its next model call yet; nil: it may.
	HoldCall(ctx context.Context, run messages.Ref, now time.Time) (*record.Parked, error)
}

// unknownHold is how long a run waits when it is unknown what its tenant has spent.
const unknownHold = time.Minute

// Quota parks a run whose tenant begins too many (its rate), or has spent its ceiling.
type Quota struct {
	Quotas Quotas // nil: no tenant has any
	Run    messages.Ref
	Now    func() time.Time
	Log    *slog.Logger

	hold *record.Parked // written by Start, Call and Clear: the run parks until its quota lets it continue
}

// Clear forgets what was learned: the run was claimed again.
func (g *Quota) Clear() { g.hold = nil }

// Start asks whether the run may begin, before anything else is done. When it is unknown the run begins: a share is not worth
// a task.
func (g *Quota) Start(ctx context.Context, published time.Time) {
	if g.Quotas == nil {
		return
	}
	hold, err := g.Quotas.HoldStart(ctx, g.Run, published, g.Now())
	if err != nil {
		g.Log.WarnContext(ctx, "a task begins although its tenant's rate is unknown", "tenant", g.Run.Tenant, "task_id", g.Run.Run, "err", err)
		return
	}
	g.hold = hold
}

// Call asks whether the run may make its next model call, and reports whether it is held. When it is unknown what the tenant
// has spent the run waits: that is money.
func (g *Quota) Call(ctx context.Context) (held bool) {
	if g.Quotas == nil {
		return false
	}
	hold, err := g.Quotas.HoldCall(ctx, g.Run, g.Now())
	if err != nil {
		g.Log.WarnContext(ctx, "a run waits because it is unknown what its tenant has spent", "tenant", g.Run.Tenant, "task_id", g.Run.Run, "err", err)
		until := g.Now().Add(unknownHold)
		hold = &record.Parked{Reason: queue.ParkQuota, Until: &until, Question: "it is unknown what the tenant has spent"}
	}
	g.hold = hold
	return hold != nil
}

// Before implements Gate. An end passes: it uses nothing.
func (g *Quota) Before(s *agent.State, next agent.Action) Verdict {
	if ends(next) || g.hold == nil {
		return Verdict{}
	}
	return park(s, *g.hold)
}
