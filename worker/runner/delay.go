package runner

import (
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/agent"
)

// earlyStart is how much before its time a run may begin: clocks of two machines differ, and what the stream publishes
// on time must not be parked for the difference.
const earlyStart = time.Second

// tooEarly is the park of a run whose task may not begin yet, as one that was published with its time to come; nil: it
// may, or it ends anyway, or is held for longer.
func (x *execution) tooEarly(s *agent.State, next agent.Action) *agent.Park {
	if _, ends := next.(*agent.Finish); ends || s.Task.Delay(x.now()) <= earlyStart {
		return nil
	}
	if x.hold != nil && x.hold.Until != nil && x.hold.Until.After(*s.Task.NotBefore) {
		return nil // it would not be asked for its turn again
	}
	again := x.hold != nil && x.hold.Again
	return &agent.Park{Parked: messages.Parked{Reason: messages.ParkNotBefore, Until: new(s.Task.NotBefore.UTC()), Again: again}}
}
