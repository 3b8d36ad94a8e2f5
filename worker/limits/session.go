package limits

import (
	"context"
	"errors"
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/worker/agent"
)

// Turns keeps the order of runs in each session. Safe for concurrent use.
type Turns interface {
	// JoinSession enters a run into the order and reports whether it has the turn, and then which runs ended before it, oldest
	// first. runlog.ErrSessionFull: there is no room.
	JoinSession(ctx context.Context, run messages.Ref, name string) (turn bool, ended []string, err error)
}

// Session parks a run while an earlier run of its session has the turn. A session is a semaphore with one permit, which a
// run keeps until it has ended.
type Session struct {
	Turns Turns

	waits   bool               // written by Join: another run has the turn
	refused *messages.RunError // written by Join: why the run can have none
}

// Join asks for the turn, as an agent.JoinSession says, and returns the runs that ended before, oldest first. Without the
// turn the run parks or ends next.
func (g *Session) Join(ctx context.Context, run messages.Ref, name string) (turn bool, ended []string, err error) {
	turn, ended, err = g.Turns.JoinSession(ctx, run, name)
	switch {
	case errors.Is(err, runlog.ErrSessionFull):
		g.refused = &messages.RunError{Code: messages.CodeConflict, Message: "session: " + err.Error() + "; submit it again later"}
		return false, nil, nil
	case err != nil:
		return false, nil, fmt.Errorf("join session: %w", err)
	}
	g.waits = !turn
	return turn, ended, nil
}

// Before implements Gate.
func (g *Session) Before(s *agent.State, next agent.Action) Verdict {
	if _, joins := next.(*agent.JoinSession); !joins {
		return Verdict{}
	}
	switch {
	case g.refused != nil:
		return Verdict{Instead: &agent.Finish{Status: messages.StatusFailed, Err: g.refused}}
	case g.waits:
		return park(s, record.Parked{Reason: queue.ParkSession})
	default:
		return Verdict{}
	}
}
