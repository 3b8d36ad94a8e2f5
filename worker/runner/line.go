package runner

import (
	"context"
	"fmt"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/model"
)

// inLine is what comes before the next action because of a cap or a pause; nil: nothing. Caps are looked at once in
// each claim, pauses before each call of the model too.
func (x *execution) inLine(s *agent.State, next agent.Action) agent.Action {
	k := x.cfg.Keeper
	if k.Lines == nil || len(x.flying) > 0 {
		return nil
	}
	_, calls := next.(*agent.CallModel)
	if _, acts := next.(*agent.CallTools); !calls && !acts || x.placed && !calls {
		return nil
	}
	if x.waitsIn != "" {
		reason := messages.ParkLine
		if messages.IsPausedLine(x.waitsIn) {
			reason = messages.ParkPaused
		}
		return &agent.Park{Parked: messages.Parked{Reason: reason, Line: x.waitsIn}}
	}
	if paused := k.PausedFor(s.Task, x.withheld); paused != "" {
		return &agent.JoinLines{Lines: []string{paused}}
	}
	if x.placed {
		return nil
	}
	if lines := k.LinesOf(s.Task); len(lines) > 0 {
		return &agent.JoinLines{Lines: lines}
	}
	x.placed = true // it needs none
	return nil
}

// lined says, before it is done, that the run asks for places: so they are given back however it ends. Nil: its log
// says so already.
func (x *execution) lined(a *agent.JoinLines) messages.Record {
	known := func(line string) bool { return slices.Contains(x.state.Head.Lines, line) }
	if lines := slices.DeleteFunc(slices.Clone(a.Lines), known); len(lines) > 0 {
		return &messages.Lined{Lines: lines}
	}
	return nil
}

// joinLines asks for the run's places. Without them it parks.
func (x *execution) joinLines(ctx context.Context, a *agent.JoinLines) (agent.Action, error) {
	limit := 0
	if c := x.state.Task.Concurrency; c != nil {
		limit = max(c.Limit, 1)
	}
	waits, err := x.cfg.Keeper.JoinLines(ctx, x.run, x.state.Head.ClaimSeq, a.Lines, limit)
	if err != nil {
		return nil, fmt.Errorf("ask for a place: %w", err)
	}
	x.waitsIn = waits
	if waits == "" && !messages.IsPausedLine(a.Lines[0]) {
		x.placed = true
	}
	if waits == "" {
		x.withheld = ""
	}
	return x.commit(ctx)
}

// withhold reports whether a call was not begun because a provider is paused; the run then waits for the end of that.
func (x *execution) withhold(e *model.Error) bool {
	if e.Paused == "" || x.cfg.Keeper.Lines == nil {
		return false
	}
	resumed := x.cfg.Keeper.PausedFor(x.state.Task, e.Paused) == ""
	if again := x.withheld == e.Paused; resumed && again { // whoever says so does not agree with our caps
		return false
	}
	x.withheld = e.Paused
	return true
}
