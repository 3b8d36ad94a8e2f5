package replay

import (
	"fmt"
	"iter"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/agent"
)

// Report is what came of a check.
type Report struct {
	Decisions int `json:"decisions"` // that were made again, and were the same
	// Unchecked are decisions that no planner makes: of the clock, of prices, of the platform, or of a kind that this
	// code cannot make again.
	Unchecked  int         `json:"unchecked"`
	Difference *Difference `json:"difference,omitempty"` // the first one; what comes after it was not looked at
}

// Difference is a decision that would be another one today.
type Difference struct {
	Seq      uint64    `json:"seq"`
	At       time.Time `json:"at"`
	Step     int       `json:"step"`
	Recorded string    `json:"recorded"`
	Planned  string    `json:"planned"`
}

// Check plans again, wherever an owner of the run decided. What a fork has kept of another run was decided there and is
// not checked. An error is one of entries, or of a log that does not fold any more.
func Check(entries iter.Seq2[messages.Entry, error]) (Report, error) {
	var r Report
	err := walk(entries, func(p *point) bool {
		if p.kept || p.entry.Head.Claim == "" { // nobody owned it: it was ended in the queue, or refused
			return true
		}
		what, decision := recorded(p.record)
		if !decision {
			return true
		}
		action := plan(p.state)
		switch judge(p.state, action, p.record) {
		case same:
			r.Decisions++
		case unknown:
			r.Unchecked++
		case differs:
			r.Difference = &Difference{
				Seq: p.entry.Seq, At: p.entry.Head.Time, Step: p.state.Step, Recorded: what, Planned: describe(p.state, action),
			}
			return false
		}
		return true
	})
	return r, err
}

type verdict int

const (
	same verdict = iota
	differs
	unknown
)

func verdictOf(ok bool) verdict {
	if ok {
		return same
	}
	return differs
}

// recorded is a decision in words; false: the record is none.
func recorded(r messages.Record) (string, bool) {
	switch r := r.(type) {
	case *messages.StepStarted:
		return fmt.Sprintf("begin step %d", r.Step), true
	case *messages.StepEnded:
		return fmt.Sprintf("end step %d", r.Step), true
	case *messages.ToolStarted:
		return "call the tool " + call(r.Call), true
	case *messages.Parked:
		return "park for " + r.Reason, true
	case *messages.Finished:
		return "end: " + messages.Clip(ending(&r.Result), maxText), true
	case *messages.BudgetWarned:
		return "warn", true
	default:
		return "", false
	}
}

// judge tells whether an action of the planner is what was recorded.
func judge(s *agent.State, a agent.Action, r messages.Record) verdict {
	if byOthers(r) {
		return unknown
	}
	switch a.(type) {
	case *agent.CallModel, *agent.CallTools, *agent.Park, *agent.Finish:
	default: // no planner, or an action that this code cannot compare
		return unknown
	}
	switch r := r.(type) {
	case *messages.StepStarted:
		next, ok := a.(*agent.CallModel)
		return verdictOf(ok && !s.Calling && next.Step == r.Step)
	case *messages.StepEnded:
		next, ok := a.(*agent.CallModel)
		_, ends := a.(*agent.Finish)
		return verdictOf(r.Step == s.Step && (ends || ok && next.Step != r.Step))
	case *messages.ToolStarted:
		_, ok := a.(*agent.CallTools)
		return verdictOf(ok && opened(s, r.Call))
	case *messages.Parked:
		return parked(s, a, r)
	case *messages.Finished:
		end, ok := a.(*agent.Finish)
		return verdictOf(ok && sameEnd(end, &r.Result))
	default:
		return unknown
	}
}

// byOthers tells whether the clock, prices or the platform decided, and not the planner.
func byOthers(r messages.Record) bool {
	switch r := r.(type) {
	case *messages.BudgetWarned:
		return true
	case *messages.Parked:
		return r.Reason == messages.ReasonBudget
	case *messages.Finished:
		if r.Dead || r.Result.Error == nil {
			return r.Dead
		}
		c := r.Result.Error.Code
		return c == messages.CodeBudget || c == messages.CodeDeadline
	default:
		return false
	}
}

func opened(s *agent.State, c messages.ToolCall) bool {
	for _, o := range s.Open {
		if o.Call == c && o.Result == nil {
			return true
		}
	}
	return false
}

func parked(s *agent.State, a agent.Action, r *messages.Parked) verdict {
	switch a := a.(type) {
	case *agent.CallModel:
		return verdictOf(s.Calling && r.Reason == messages.ParkModel)
	case *agent.CallTools:
		return verdictOf(r.Call != "" && r.Reason != messages.ParkModel)
	case *agent.Park:
		return verdictOf(a.Parked.Reason == r.Reason && a.Parked.Call == r.Call)
	default:
		return differs
	}
}

// sameEnd compares what an end means. The wording of an error may change.
func sameEnd(f *agent.Finish, r *messages.AgentResult) bool {
	switch {
	case f.Status != r.Status || (f.Err == nil) != (r.Error == nil):
		return false
	case f.Err != nil:
		return f.Err.Code == r.Error.Code
	default:
		text, _ := r.Result.(string)
		return f.Result == text
	}
}

func call(c messages.ToolCall) string {
	return messages.Clip(c.Name, maxText) + " " + messages.Clip(c.Arguments, maxText)
}

// describe is an action in words.
func describe(s *agent.State, a agent.Action) string {
	switch a := a.(type) {
	case *agent.CallModel:
		if s.Calling && a.Step == s.Step {
			return fmt.Sprintf("wait for the reply of step %d", a.Step)
		}
		return fmt.Sprintf("begin step %d", a.Step)
	case *agent.CallTools:
		for _, o := range s.Open {
			if o.Result == nil {
				return "call the tool " + call(o.Call)
			}
		}
		return "call tools"
	case *agent.Park:
		return "park for " + a.Parked.Reason
	case *agent.Finish:
		return "end: " + messages.Clip(ending(&messages.AgentResult{Status: a.Status, Error: a.Err, Result: a.Result}), maxText)
	default:
		return fmt.Sprintf("%T", a)
	}
}
