package runner

import (
	"context"
	"fmt"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/agent"
)

// Elsewhere is the workers that have what this one lacks.
type Elsewhere interface {
	// Missing says what no worker has; empty: there is one that fits.
	Missing(n *messages.Needs) string
	// Pass gives the ticket's message to one that fits and has a free slot. If it returns true the message must not be
	// touched any longer.
	Pass(ctx context.Context, n *messages.Needs) (bool, error)
}

// lacks names what this worker lacks of what a run needs; empty: it fits.
func (x *execution) lacks(n *messages.Needs) string { return n.Missing(x.cfg.Tools.Has, x.cfg.Labels) }

// needs is what a run needs of its worker. Its definition, and not its pinned tools, says which: a worker that lacked them
// when the run began could not pin them.
func needs(def *messages.Definition, task *messages.Task, pinned []messages.ToolSpec) *messages.Needs {
	return &messages.Needs{Tools: slices.Clone(def.Tools), Labels: task.Requires, Pinned: len(pinned) > 0 || len(def.Tools) == 0}
}

// unfit is why a run that can be worked by no other worker fails.
func unfit(def *messages.Definition, lacks string, err error) *messages.RunError {
	if err != nil {
		return &messages.RunError{Code: messages.CodeInvalidInput, Message: fmt.Sprintf("agent %s: %v", def.Name, err)}
	}
	return &messages.RunError{Code: messages.CodeInvalidInput, Message: "requires: this worker, the only one, does not have " + lacks}
}

// misfit is the park of a run that this worker cannot go on with; nil: it can, or the run ends or waits anyway.
func (x *execution) misfit(s *agent.State, next agent.Action) *agent.Park {
	switch next.(type) {
	case *agent.Finish, *agent.Park:
		return nil
	}
	if x.fits || x.ticket.Elsewhere == nil {
		return nil
	}
	n := needs(s.Agent, s.Task, s.Tools)
	lacks := x.lacks(n)
	if lacks == "" && n.Pinned {
		x.fits = true
		return nil
	}
	text := x.ticket.Elsewhere.Missing(n)
	switch {
	case text != "":
	case lacks == "": // an owner without its tools was lost between its claim and its park; the next claim pins them
		text = "its tools are not in its log yet"
	default:
		text = "no worker that has " + lacks + " has a free slot"
	}
	p := &agent.Park{Parked: messages.Parked{Reason: messages.ParkWorker, Question: text, Needs: n}}
	untilEnd(s, &p.Parked)
	return p
}
