package limits

import (
	"context"
	"fmt"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
)

// Permits keeps who has a permit of each semaphore, a semaphore in the log's words, and who waits for one. Safe for concurrent use.
type Permits interface {
	// SemaphoresOf are the semaphores of which a run must hold a permit while it works, in the order in which all runs ask.
	SemaphoresOf(t *messages.Task) []string
	// PausedFor is the semaphore of the pause that keeps a run from its next step; empty: there is none. Provider, unless it is
	// empty, is one without which the run cannot continue.
	PausedFor(t *messages.Task, provider string) string
	// Acquire asks for a permit of each, for the claim at a sequence. It returns the first that has none, where the run
	// waits from now on; empty: it has them all.
	Acquire(ctx context.Context, run messages.Ref, claim uint64, names []string, limit int) (waits string, err error)
}

// Semaphore parks a run that has no permit for its named workspace or under a cap of its tenant, its agent or its concurrency key, or that is paused. A
// pause is a semaphore without permits. Caps are looked at once in each claim, before its first call; pauses before each call
// of a model too.
type Semaphore struct {
	Permits Permits
	Flying  func() bool // reports whether tool calls are on their way; what flies is waited for first

	acquired bool   // written by Before and Join: the run has its permits
	waitsIn  string // written by Join: the semaphore that has none for it
	withheld string // written by Withhold and Join: the paused provider without which the run cannot continue
}

// Before implements Gate, for the permits that a claim needs.
func (g *Semaphore) Before(s *agent.State, next agent.Action) Verdict {
	if g.acquired || g.Flying() {
		return Verdict{}
	}
	switch next.(type) {
	case *agent.CallModel, *agent.CallTools, *agent.RecallMemories:
	case *agent.CollectChildren:
		if s.Task.Workspace == "" { // else it may write a file: the files must be those of the workspace by then
			return Verdict{}
		}
	default:
		return Verdict{}
	}
	if v := g.paused(s); !v.Passes() {
		return v
	}
	if names := g.Permits.SemaphoresOf(s.Task); len(names) > 0 {
		return join(s, names)
	}
	g.acquired = true // it needs none
	return Verdict{}
}

// pause is the Gate of a run that has its permits.
func (g *Semaphore) pause(s *agent.State, next agent.Action) Verdict {
	if _, calls := next.(*agent.CallModel); !calls || !g.acquired || g.Flying() {
		return Verdict{}
	}
	return g.paused(s)
}

// paused holds a run that waits in a semaphore, or is to ask whether it must.
func (g *Semaphore) paused(s *agent.State) Verdict {
	if g.waitsIn != "" {
		reason := queue.ParkSemaphore
		if queue.IsPauseSemaphore(g.waitsIn) {
			reason = queue.ParkPaused
		}
		return park(s, record.Parked{Reason: reason, Semaphore: g.waitsIn})
	}
	if name := g.Permits.PausedFor(s.Task, g.withheld); name != "" {
		return join(s, []string{name})
	}
	return Verdict{}
}

// join is to be done next. That the run asks for permits is recorded before it does, unless its log says so already: so they
// are given back however it ends.
func join(s *agent.State, names []string) Verdict {
	v := Verdict{Instead: &agent.AcquirePermits{Semaphores: names}}
	known := func(name string) bool { return slices.Contains(s.Head.Semaphores, name) }
	if fresh := slices.DeleteFunc(slices.Clone(names), known); len(fresh) > 0 {
		v.Records = []record.Record{&record.Lined{Semaphores: fresh}}
	}
	return v
}

// Join asks for permits, as an agent.AcquirePermits says. Without them the run parks next.
func (g *Semaphore) Join(ctx context.Context, run messages.Ref, s *agent.State, names []string) error {
	limit := 0
	if c := s.Task.Concurrency; c != nil {
		limit = max(c.Limit, 1)
	}
	waits, err := g.Permits.Acquire(ctx, run, s.Head.ClaimSeq, names, limit)
	if err != nil {
		return fmt.Errorf("ask for a permit: %w", err)
	}
	g.waitsIn = waits
	if waits == "" {
		g.acquired = g.acquired || !queue.IsPauseSemaphore(names[0])
		g.withheld = ""
	}
	return nil
}

// Acquired reports whether the run has all permits that it needs.
func (g *Semaphore) Acquired() bool { return g.acquired }

// Withhold reports whether the run waits for the end of the pause of a provider, because of which its call was not begun.
func (g *Semaphore) Withhold(t *messages.Task, provider string) bool {
	resumed := g.Permits.PausedFor(t, provider) == ""
	if again := g.withheld == provider; resumed && again { // the router does not agree with our caps
		return false
	}
	g.withheld = provider
	return true
}
