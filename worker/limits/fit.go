package limits

import (
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
)

// Roster knows the other workers.
type Roster interface {
	// Missing says what no worker has of what a run needs; empty: there is one that fits.
	Missing(n *messages.Needs) string
}

// Fit parks a run that this worker lacks something for.
type Fit struct {
	Has    func(tool string) bool
	Labels messages.Labels
	Roster Roster // nil: no other worker will ever come, and none is waited for

	fits bool // written by Before: this worker has all that the run needs
}

// Needs are what a run needs of its worker. Its definition, and not its pinned tools, says which: a worker that lacked them
// when the run began could not pin them.
func Needs(def *messages.Definition, task *messages.Task, pinned []messages.ToolSpec) *messages.Needs {
	return &messages.Needs{Tools: slices.Clone(def.Tools), Labels: task.Requires, Pinned: len(pinned) > 0 || len(def.Tools) == 0}
}

// Lacks names what this worker lacks of what a run needs; empty: it fits.
func (g *Fit) Lacks(n *messages.Needs) string { return n.Missing(g.Has, g.Labels) }

// Before implements Gate.
func (g *Fit) Before(s *agent.State, next agent.Action) Verdict {
	switch next.(type) {
	case *agent.Finish, *agent.Park, *agent.LearnExample: // they need nothing
		return Verdict{}
	}
	if g.fits || g.Roster == nil {
		return Verdict{}
	}
	n := Needs(s.Agent, s.Task, s.Tools)
	lacks := g.Lacks(n)
	if lacks == "" && n.Pinned {
		g.fits = true
		return Verdict{}
	}
	text := g.Roster.Missing(n)
	switch {
	case text != "":
	case lacks == "": // an owner without its tools was lost between its claim and its park; the next claim pins them
		text = "its tools are not in its log yet"
	default:
		text = "no worker that has " + lacks + " has a free slot"
	}
	return park(s, record.Parked{Reason: queue.ParkWorker, Question: text, Needs: n})
}
