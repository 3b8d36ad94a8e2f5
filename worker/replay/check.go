package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/worker/agent"
)

// Check repeats every planning decision of the run's owners. Decisions that a fork has kept from another run are not checked. An
// error comes from entries, means that the log can no longer be folded, or is the cause of ctx, at whose end it stops within an entry too.
func Check(ctx context.Context, entries iter.Seq2[record.Entry, error]) (control.RunCheck, error) {
	var c checker
	err := walk(entries, func(p *point) bool { return ctx.Err() == nil && c.visit(p) })
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return c.report, err
}

// checker follows a log.
type checker struct {
	report control.RunCheck
	owed   []record.Record // that were planned, and must be the next decisions
}

func (c *checker) visit(p *point) (more bool) {
	if p.kept || p.entry.Head.Claim == "" { // it had no owner: it ended in the queue, or was refused
		return true
	}
	what, decision := recorded(p.record)
	if !decision {
		return true
	}
	v, planned := c.judge(p)
	switch v {
	case same:
		c.report.Decisions++
	case unknown:
		c.report.Unchecked++
	case differs:
		c.report.Difference = &control.OtherDecision{
			Seq: p.entry.Seq, At: p.entry.Head.Time, Step: p.state.Step, Recorded: what, Planned: planned,
		}
		return false
	}
	return true
}

// judge reports whether a decision is what the planner decides, and if not, what that is.
func (c *checker) judge(p *point) (v verdict, planned string) {
	if byOthers(p.state, p.record) {
		c.owed = nil
		return unknown, ""
	}
	if len(c.owed) == 0 {
		action := plan(p.state, p.record)
		if action == nil {
			return unknown, ""
		}
		if c.owed = p.state.Entails(action); len(c.owed) == 0 {
			v = judge(p.state, action, p.record)
		}
		planned = describe(p.state, action)
	}
	if len(c.owed) > 0 {
		v = verdictOf(sameDecision(c.owed[0], p.record))
		if planned == "" {
			planned, _ = recorded(c.owed[0])
		}
		c.owed = c.owed[1:]
	}
	// An end that another process decided is announced by an earlier record.
	if _, ends := p.record.(*record.StepEnded); v == differs && ends && slices.ContainsFunc(p.entry.Records, func(r record.Record) bool {
		_, end := r.(*record.Finished)
		return end && byOthers(p.state, r)
	}) {
		c.owed = nil
		return unknown, ""
	}
	return v, planned
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
func recorded(r record.Record) (string, bool) {
	switch r := r.(type) {
	case *record.StepStarted:
		switch {
		case r.StepID != "":
			return fmt.Sprintf("begin %q of the plan in step %d", strict.Clip(r.StepID, maxText), r.Step), true
		case r.Purpose != "":
			return fmt.Sprintf("begin step %d: %s", r.Step, r.Purpose), true
		}
		return fmt.Sprintf("begin step %d", r.Step), true
	case *record.StepEnded:
		if r.StepID != "" {
			return fmt.Sprintf("end %q of the plan: %s", strict.Clip(r.StepID, maxText), r.Status), true
		}
		return fmt.Sprintf("end step %d: %s", r.Step, r.Status), true
	case *record.Planned:
		return "continue with the plan: " + string(r.Decision), true
	case *record.ToolStarted:
		return "call the tool " + call(r.Call), true
	case *record.Parked:
		return "park for " + r.Reason, true
	case *record.Finished:
		return "end: " + strict.Clip(ending(&r.Result), maxText), true
	case *record.BudgetWarned:
		return "warn", true
	default:
		return "", false
	}
}

// sameDecision compares what two records mean. The wording of a reason may change.
func sameDecision(planned, was record.Record) bool {
	switch p := planned.(type) {
	case *record.StepStarted:
		w, ok := was.(*record.StepStarted)
		return ok && *p == *w
	case *record.StepEnded:
		w, ok := was.(*record.StepEnded)
		return ok && p.Step == w.Step && p.StepID == w.StepID && p.Status == w.Status
	case *record.Planned:
		w, ok := was.(*record.Planned)
		return ok && p.Step == w.Step && p.Decision == w.Decision && p.Fallback == w.Fallback &&
			slices.Equal(p.Renewed, w.Renewed) && samePlan(p.Plan, w.Plan)
	default:
		return false
	}
}

func samePlan(a, b *messages.Plan) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// judge reports whether an action that is to be performed is what was recorded.
func judge(s *agent.State, a agent.Action, r record.Record) verdict {
	switch a := a.(type) {
	case *agent.CallModel:
		park, ok := r.(*record.Parked)
		return verdictOf(ok && park.Reason == queue.ParkModel)
	case *agent.CallTools:
		switch r := r.(type) {
		case *record.ToolStarted:
			return verdictOf(opened(s, r.Call))
		case *record.Parked:
			return verdictOf(waits(s, r))
		default:
			return differs
		}
	case *agent.RecallMemories, *agent.LearnExample: // what they bring is no decision
		return differs
	case *agent.JoinSession:
		park, ok := r.(*record.Parked)
		return verdictOf(ok && park.Reason == queue.ParkSession)
	case *agent.Park:
		park, ok := r.(*record.Parked)
		return verdictOf(ok && a.Parked.Reason == park.Reason && a.Parked.Call == park.Call)
	case *agent.Finish:
		end, ok := r.(*record.Finished)
		return verdictOf(ok && sameEnd(a, &end.Result))
	default: // an action that this code cannot compare
		return unknown
	}
}

// byOthers reports whether the clock, prices or the platform decided, and not the planner.
func byOthers(s *agent.State, r record.Record) bool {
	switch r := r.(type) {
	case *record.BudgetWarned:
		return true
	case *record.Parked:
		return r.Reason == queue.ReasonBudget || r.Reason == queue.ParkNotBefore || r.Reason == queue.ParkQuota ||
			r.Reason == queue.ParkSemaphore || r.Reason == queue.ParkPaused || r.Reason == queue.ParkWorker || r.Reason == queue.ParkRate
	case *record.Finished:
		if r.Dead || r.Result.Error == nil {
			return r.Dead
		}
		switch r.Result.Error.Code {
		case messages.CodeBudget, messages.CodeDeadline:
			return true
		case messages.CodeConflict, messages.CodePolicy: // there was no turn in the session, or a hook refused the run
			return s.Failure == nil
		default:
			return false
		}
	default:
		return false
	}
}

// opened reports whether a call may begin. Which of several may, the tools decide.
func opened(s *agent.State, c messages.ToolCall) bool {
	return slices.ContainsFunc(s.Open, func(o agent.OpenCall) bool { return o.Call == c && o.Result == nil && !o.Approve })
}

// waits reports whether the run may park for a call.
func waits(s *agent.State, p *record.Parked) bool {
	return slices.ContainsFunc(s.Open, func(o agent.OpenCall) bool {
		return o.Call.ID == p.Call && o.Result == nil && o.Approve == (p.Approval != nil)
	})
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
	return strict.Clip(c.Name, maxText) + " " + strict.Clip(c.Arguments, maxText)
}

// describe is an action in words.
func describe(s *agent.State, a agent.Action) string {
	switch a := a.(type) {
	case *agent.CallModel:
		if s.Calling || a.Summary {
			return fmt.Sprintf("wait for the reply of step %d", a.Step)
		}
		text, _ := recorded(&record.StepStarted{Step: a.Step, Purpose: a.Purpose})
		return text
	case *agent.Decide:
		var all []string
		for _, r := range a.Records {
			text, _ := recorded(r)
			all = append(all, text)
		}
		return strict.Clip(strings.Join(all, ", "), maxText)
	case *agent.CallTools:
		for _, o := range s.Open {
			switch {
			case o.Result != nil:
			case o.Approve:
				return "ask for an approval of " + call(o.Call)
			default:
				return "call the tool " + call(o.Call)
			}
		}
		return "call tools"
	case *agent.JoinSession:
		return "wait for its turn in the session"
	case *agent.RecallMemories:
		return "search long-term memory"
	case *agent.LearnExample:
		return "become an example"
	case *agent.Park:
		return "park for " + a.Parked.Reason
	case *agent.Finish:
		return "end: " + strict.Clip(ending(&messages.AgentResult{Status: a.Status, Error: a.Err, Result: a.Result}), maxText)
	default:
		return fmt.Sprintf("%T", a)
	}
}
