package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/strict"
)

// readPlan reads the plan in a reply.
func readPlan(text string, tools []string) (*messages.Plan, error) {
	plan, err := messages.DecodePlan([]byte(strings.TrimSpace(text)))
	if err != nil {
		return nil, err
	}
	return plan, plan.CheckTools(tools)
}

// decision is how the model says to continue.
type decision struct {
	Decision  record.Decision     `json:"decision"`
	Reasoning string              `json:"reasoning,omitempty"`
	Insert    []messages.PlanStep `json:"insert,omitempty"` // of adapt: new steps; one with the id of a step that has not completed replaces it
	Skip      []string            `json:"skip,omitempty"`   // of adapt: ids of steps that shall not be done
}

// readDecision reads the decision in a reply.
func (r *planRun) readDecision(text string) (*Decide, error) {
	var d decision
	if err := strict.Decode([]byte(strings.TrimSpace(text)), &d); err != nil {
		return nil, err
	}
	planned := &record.Planned{Step: r.Step, Decision: d.Decision, Reason: strict.Clip(d.Reasoning, maxReason)}
	switch d.Decision {
	case record.DecisionAdapt:
		return r.adapt(&d, planned)
	case record.DecisionContinue, record.DecisionComplete, record.DecisionAbort:
		if len(d.Insert) > 0 || len(d.Skip) > 0 {
			return nil, &messages.FieldError{Field: "decision", Reason: fmt.Sprintf("insert and skip are for adapt, not for %s", d.Decision)}
		}
		return decide(planned), nil
	case record.DecisionReady:
	}
	return nil, &messages.FieldError{Field: "decision", Reason: "must be continue, adapt, complete or abort"}
}

// adapt makes the plan that a decision asks for.
func (r *planRun) adapt(d *decision, planned *record.Planned) (*Decide, error) {
	if len(d.Insert) == 0 && len(d.Skip) == 0 {
		return nil, &messages.FieldError{Field: "decision", Reason: "adapt needs insert or skip"}
	}
	next := *r.p.Plan
	next.Steps = slices.Clone(next.Steps)
	inserted := map[string]bool{}
	for i := range d.Insert {
		step := d.Insert[i]
		field := fmt.Sprintf("insert[%d].id", i)
		switch old := next.Find(step.ID); {
		case inserted[step.ID]:
			return nil, &messages.FieldError{Field: field, Reason: fmt.Sprintf("%q is inserted twice", strict.Clip(step.ID, 64))}
		case old == nil:
			next.Steps = append(next.Steps, step)
		case r.p.Steps[step.ID].Status == messages.StepCompleted:
			return nil, &messages.FieldError{Field: field, Reason: fmt.Sprintf("%q has completed; take another id", step.ID)}
		default:
			*old = step
			planned.Renewed = append(planned.Renewed, step.ID)
		}
		inserted[step.ID] = true
	}
	if err := next.Validate(); err != nil {
		return nil, fmt.Errorf("the changed plan: %w", err)
	}
	if err := next.CheckTools(r.toolNames()); err != nil {
		return nil, fmt.Errorf("the changed plan: %w", err)
	}
	planned.Plan = &next
	out := decide(planned)
	why := "the plan was changed"
	if d.Reasoning != "" {
		why += ": " + d.Reasoning
	}
	for i, id := range d.Skip {
		field := fmt.Sprintf("skip[%d]", i)
		switch {
		case next.Find(id) == nil:
			return nil, &messages.FieldError{Field: field, Reason: fmt.Sprintf("no step has the id %q", strict.Clip(id, 64))}
		case inserted[id]:
			return nil, &messages.FieldError{Field: field, Reason: fmt.Sprintf("%q is inserted too", id)}
		case slices.Index(d.Skip, id) != i:
			return nil, &messages.FieldError{Field: field, Reason: fmt.Sprintf("%q is named twice", id)}
		case r.p.Steps[id].Status != "":
			return nil, &messages.FieldError{Field: field, Reason: fmt.Sprintf("%q has ended already", id)}
		}
		out.Records = append(out.Records, r.skipped(id, why))
	}
	return out, nil
}
