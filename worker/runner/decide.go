package runner

import (
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/limits"
)

// decider plans, and asks what may hold the run back.
type decider struct {
	*job

	hooks  *hookWork
	limits *limits.Set
	gates  limits.Gates // of limits, in order

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

// plan is the planner's, unless a hook refused the run.
func (x *decider) plan(s *agent.State) agent.Action {
	a := s.Next(x.planner, x.cfg.Controller.Sessions != nil)
	if _, ends := a.(*agent.Finish); ends || x.hooks.denied == nil {
		return a
	}
	return &agent.Finish{Status: messages.StatusFailed, Err: x.hooks.denied}
}
