package agent

import (
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages/record"
)

// AcquirePermits asks for the run's permits of semaphores, in their order, before it works.
type AcquirePermits struct{ Semaphores []string }

// TakePermits takes a permit for each of these open calls under the rates of their tools. Without calls it waits for a permit that
// is valid at a moment that is near.
type TakePermits struct {
	Calls []string // their ids
	At    time.Time
}

func (*AcquirePermits) action() {}
func (*TakePermits) action()    {}

// keepPermits is what a park leaves: permits for later, and calls that are begun anew.
func (s *State) keepPermits(p *record.Parked) {
	s.Permits, s.PermitsHeld = p.Permits, false
	for i := range s.Open {
		c := &s.Open[i]
		if c.Started != "" && c.Result == nil && slices.Contains(p.Unmade, c.Call.ID) {
			c.Started = ""
			s.ToolCalls--
		}
	}
}

// handPermits gives the permits to the first claim after their park. Their fate under an earlier claim is unknown, so no
// other claim has them.
func (s *State) handPermits() {
	if s.PermitsHeld {
		s.Permits = nil
	}
	s.PermitsHeld = len(s.Permits) > 0
}

// Permit is what the park before this claim left for an open call, if anything.
func (s *State) Permit(call string) *record.Permit {
	if !s.PermitsHeld {
		return nil
	}
	for i := range s.Permits {
		if p := &s.Permits[i]; p.Step == s.Step && p.Call == call {
			return p
		}
	}
	return nil
}
