package runner

import (
	"math"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
)

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
