package limits

import (
	"time"

	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
)

// Deadline ends a run whose time is over, or whose conversation has grown too large.
type Deadline struct {
	Now func() time.Time
}

// Before implements Gate.
func (g *Deadline) Before(s *agent.State, next agent.Action) Verdict {
	if ends(next) {
		return Verdict{}
	}
	if f := s.Overdue(g.Now()); f != nil {
		return Verdict{Instead: f, Amends: true}
	}
	return Verdict{}
}

// Budget ends a run before it exceeds a cap of its budget, or asks whether it may.
type Budget struct {
	Now   func() time.Time
	Price agent.Price

	due []*record.BudgetWarned // written by Before, for warn in the same round
}

// Before implements Gate.
func (g *Budget) Before(s *agent.State, next agent.Action) Verdict {
	g.due = nil
	if ends(next) {
		return Verdict{}
	}
	instead, due := s.Afford(next, g.Now(), g.Price)
	if g.due = due; instead == next {
		return Verdict{}
	}
	return Verdict{Instead: instead, Amends: true}
}

// warn records that a soft share of a cap is used.
func (g *Budget) warn(*agent.State, agent.Action) (v Verdict) {
	for _, w := range g.due {
		v.Records = append(v.Records, w)
	}
	return v
}
