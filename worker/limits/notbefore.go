package limits

import (
	"time"

	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
)

// earlyStart is how much before its time a run may begin: clocks of two machines differ, and what the stream publishes
// on time must not be parked for the difference.
const earlyStart = time.Second

// NotBefore parks a run whose task may not begin yet, as one that was published with its time to come.
type NotBefore struct {
	Now   func() time.Time
	Quota *Quota // may hold the run for longer
}

// Before implements Gate.
func (g *NotBefore) Before(s *agent.State, next agent.Action) Verdict {
	if s.Task.NotBefore == nil || ends(next) || s.Task.Delay(g.Now()) <= earlyStart {
		return Verdict{}
	}
	hold := g.Quota.hold
	if hold != nil && hold.Until != nil && hold.Until.After(*s.Task.NotBefore) {
		return Verdict{} // it would not be asked for its turn again
	}
	again := hold != nil && hold.Again
	return Verdict{Instead: &agent.Park{Parked: record.Parked{
		Reason: queue.ParkNotBefore, Until: new(s.Task.NotBefore.UTC()), Again: again,
	}}}
}
