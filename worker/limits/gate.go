// Package limits is what may hold a run back: each limit is a [Gate], and [Set.InOrder] is the one list of them.
//
// Before an action of a run has an effect, its owner asks the gates in that order, through [Gates.Before]. The first that
// holds the run decides: the run parks, ends, or first asks for what it lacks, such as a permit. The reasons for which gates
// park runs are explained by [queue.ParkReasons], which is what people, metrics and the docs are told.
//
// Gates decide on a run's state, and on what their owner has learned since it claimed the run: that its tenant has spent
// its ceiling, that a cap has no permit left. They never wait. What they must learn from outside they learn through methods
// of their own, which the owner calls between two decisions. A Set belongs to one owner of one run, and one goroutine uses it.
package limits

import (
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
)

// Gate is one limit.
type Gate interface {
	// Before is asked before the next action of a run. The state may be ahead of the log by what is about to be appended.
	Before(s *agent.State, next agent.Action) Verdict
}

// Verdict is what a gate says of an action. The zero Verdict lets it pass.
type Verdict struct {
	// Instead takes the place of the action, and no further gate is asked. A park in it is complete. With Amends the gates
	// that follow are asked about it as if it had been planned.
	Instead agent.Action
	Amends  bool
	// Records explain the verdict and come before Instead. Without an Instead the run is planned again after them.
	Records []record.Record
}

// Passes reports whether the verdict is neither an action nor a record.
func (v *Verdict) Passes() bool { return v.Instead == nil && len(v.Records) == 0 }

// Func is a Gate.
type Func func(s *agent.State, next agent.Action) Verdict

// Before implements Gate.
func (f Func) Before(s *agent.State, next agent.Action) Verdict { return f(s, next) }

// Named is a gate with its name in the list, as queue.ParkReason has it, and a few words for people about what it does.
type Named struct {
	Name, Does string
	Gate
}

// Gates are asked in their order.
type Gates []Named

// Before asks the gates about a planned action until one of them decides otherwise. It returns the action as it was amended
// on the way, and the verdict, which passes when the action may be performed.
func (gs Gates) Before(s *agent.State, next agent.Action) (agent.Action, Verdict) {
	for i := range gs {
		switch v := gs[i].Before(s, next); {
		case v.Amends:
			next = v.Instead
		case !v.Passes():
			return next, v
		}
	}
	return next, Verdict{}
}

// Set is the gates of one owner of a run. All fields are needed, but those that say otherwise.
type Set struct {
	Deadline  Deadline
	Budget    Budget
	NotBefore NotBefore
	Fit       Fit
	Quota     Quota
	Semaphore Semaphore
	Policy    Gate // default: there are no rules
	Hooks     Gate // default: there are none
	Provider  Provider
	Rate      Rate
	Approval  Gate // default: every call may be made
	Session   Session
}

// InOrder is every gate in the order in which they are asked. What ends a run for good comes first; then what keeps it for
// long, before it takes permits that others want; then what is asked of others; then what one action alone waits for.
func (s *Set) InOrder() Gates {
	return Gates{
		{"deadline", "ends a run whose time is over, or whose conversation is too large", &s.Deadline},
		{"budget", "ends a run before it exceeds a cap of its budget, or asks whether it may", &s.Budget},
		{"not before", "keeps a task until its time", &s.NotBefore},
		{"worker fit", "keeps a run for a worker that has its tools and labels", &s.Fit},
		// Only about a run that continues here.
		{"budget warnings", "warn that a soft share of a cap is used", Func(s.Budget.warn)},
		{"quota", "keeps a run whose tenant begins too many, or has spent its ceiling", &s.Quota},
		{"semaphore", "gives the run its permits under the caps of its tenant, its agent and its concurrency key", &s.Semaphore},
		{"policy", "refuses calls, cleans their arguments, or has them wait for a person, by the rules of fleet, tenant and agent", orPass(s.Policy)},
		{"hooks", "calls the hooks that are to be asked or told first", orPass(s.Hooks)},
		// Of a run that has its permits: its hooks are told first.
		{"pause", "keeps a run whose tenant, agent or provider is paused", Func(s.Semaphore.pause)},
		{"provider limit", "keeps a run whose model asked to be called later", &s.Provider},
		// Of calls that may be made but for this: one that waits for a person takes no permit yet.
		{"tool rate", "keeps calls of tools whose rates, of the fleet, the tenant or the agent, have no room", &s.Rate},
		{"approval", "keeps a run whose calls wait for a person, or for what a tool waits for", orPass(s.Approval)},
		{"session", "gives the run its turn in its session", &s.Session},
	}
}

func orPass(g Gate) Gate {
	if g == nil {
		return Func(func(*agent.State, agent.Action) Verdict { return Verdict{} })
	}
	return g
}

// ends reports whether a run is about to end: nothing holds it back then.
func ends(a agent.Action) bool {
	switch a.(type) {
	case *agent.Finish, *agent.LearnExample:
		return true
	default:
		return false
	}
}

// park holds a run for a reason, no longer than until its time is over.
func park(s *agent.State, p record.Parked) Verdict {
	s.UntilEnd(&p)
	return Verdict{Instead: &agent.Park{Parked: p}}
}
