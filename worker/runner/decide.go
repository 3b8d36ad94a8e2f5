package runner

import (
	"fmt"
	"math"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/limits"
)

// decider plans, and asks what may hold the run back.
type decider struct {
	*job

	hooks     *hookWork
	footprint *footprint
	limits    *limits.Set
	gates     limits.Gates // of limits, in order

	planner agent.Planner // written by decide, once the agent is known
}

// decide plans on a state and advances it by all that needs no effect, until an action is left that has one, or that
// ends the work. The records say what was decided.
func (x *decider) decide(s *agent.State) (decisions []record.Record, action agent.Action, err error) {
	add := func(rs ...record.Record) error {
		for _, r := range rs {
			decisions = append(decisions, r)
			if err := s.Advance(r); err != nil {
				return err
			}
		}
		return nil
	}
	if x.planner == nil {
		if x.planner = x.r.planners[s.Agent.Planner]; x.planner == nil {
			return nil, nil, fmt.Errorf("plan: agent %s has the unknown planner %q", s.Agent.Name, s.Agent.Planner)
		}
	}
	for {
		action, v := x.gates.Before(s, x.plan(s))
		if err := add(v.Records...); err != nil {
			return nil, nil, err
		}
		switch held := v.Instead.(type) {
		case nil:
			if !v.Passes() {
				continue
			}
		case *agent.Park:
			return decisions, held, add(&held.Parked)
		case *agent.Finish:
			return decisions, held, add(x.finished(s, held))
		default: // it is asked for what it lacks
			return decisions, held, nil
		}
		entailed := s.Entails(action)
		for _, r := range entailed {
			if err := add(x.known(s, r)); err != nil {
				return nil, nil, err
			}
		}
		switch a := action.(type) {
		case *agent.CallModel:
			if len(entailed) == 0 {
				return decisions, a, nil
			}
		case *agent.CallTools, *agent.JoinSession, *agent.RecallMemories, *agent.LearnExample:
			return decisions, a, nil
		case *agent.Decide:
		case *agent.Park:
			if a.For > 0 {
				until := x.now().Add(a.For)
				a.Parked.Until = &until
			}
			s.UntilEnd(&a.Parked)
			return decisions, a, add(&a.Parked)
		case *agent.Finish:
			if s.StartedAt.IsZero() {
				s.StartedAt = x.now()
			}
			return decisions, a, add(x.finished(s, a))
		default:
			return nil, nil, fmt.Errorf("plan: unknown action %T", action)
		}
	}
}

func (x *decider) finished(s *agent.State, f *agent.Finish) *record.Finished {
	end := &record.Finished{Result: s.Conclude(x.run, f, x.now())}
	if s.Parent != nil {
		end.Used = s.Had()
	}
	return end
}

// plan is the planner's, unless a hook refused the run or it asked for too much memory.
func (x *decider) plan(s *agent.State) agent.Action {
	a := s.Next(x.planner, x.cfg.Controller.Sessions != nil)
	denied := x.hooks.denied
	if x.footprint != nil && denied == nil {
		denied = x.footprint.denied
	}
	if _, ends := a.(*agent.Finish); ends || denied == nil {
		return a
	}
	return &agent.Finish{Status: messages.StatusFailed, Err: denied}
}

// known is a record as it goes to the log: a plan without secrets, as the calls that models make have none, and with what
// this worker knows of its steps.
func (x *decider) known(s *agent.State, r record.Record) record.Record {
	p, ok := r.(*record.Planned)
	if !ok || p.Plan == nil {
		return r
	}
	out := *p
	plan := *p.Plan // the task's or the agent's own stays as it is
	plan.Steps = make([]messages.PlanStep, len(p.Plan.Steps))
	out.Plan, out.Reason = &plan, x.cfg.Redact(p.Reason)
	for i := range p.Plan.Steps {
		step := p.Plan.Steps[i]
		step.Description, step.Args = x.cfg.Redact(step.Description), x.redactArgs(step.Args)
		plan.Steps[i] = step
		if plan.NeedsApproval(&step) || s.Agent.AsksFor(s.Tools, step.Tool) {
			out.Approvals = append(out.Approvals, step.ID)
		}
		if mean, ok := x.cfg.Tools.Mean(step.Tool); ok && s.Task.Seed == nil { // a run with a seed is the same each time
			if out.Means == nil {
				out.Means = map[string]float64{}
			}
			const millis = 1000
			out.Means[step.ID] = max(1, math.Round(mean.Seconds()*millis)) / millis
		}
	}
	return &out
}
