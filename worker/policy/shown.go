package policy

import (
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// Shown is what the events of a run of an agent may show: what the strictest of the rules lets them. Nil Rules are those of no
// layer: personal data and keys are taken out.
func (r *Rules) Shown(agent *messages.Definition) *record.Shown {
	shown := record.ShownByDefault()
	if r == nil {
		return shown
	}
	redact, open := false, false
	for i := range r.layers {
		e := r.layers[i].events
		if e == nil {
			continue
		}
		if e.Redact != nil {
			redact, open = redact || *e.Redact, open || !*e.Redact
		}
		shown.NoInputs = shown.NoInputs || e.Inputs == messages.PolicyExclude
		shown.NoOutputs = shown.NoOutputs || e.Outputs == messages.PolicyExclude
	}
	if open && !redact {
		shown.Redact = 0
	}
	// Such replies are calls, written as text.
	shown.NoReplies = shown.NoInputs && agent.Planner != messages.PlannerTools
	return shown
}
