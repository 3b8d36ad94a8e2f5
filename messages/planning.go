package messages

import (
	"fmt"
	"slices"

	"github.com/longshore-run/longshore/messages/strict"
)

// Values of Definition.Observe.
const (
	ObserveAlways    = "always"
	ObserveOnFailure = "on_failure"
	ObserveNever     = "never"
)

// Values of Definition.OnNetworkError.
const (
	NetworkPark  = "park"
	NetworkRetry = "retry"
	NetworkAbort = "abort"
)

// MaxModelRetries is how often a model call is made again at most, after its first attempt.
const MaxModelRetries = 10

// noSchemaOfPlan is why outputSchema is refused where a plan is worked: its result is a summary or outputs of tools.
const noSchemaOfPlan = "not supported with planner plan"

// checkPlanning looks at what counts for planner "plan", and at what is done when a model fails. None of it has a default that is filled in, so agents of
// other planners stay as they are written.
func (d *Definition) checkPlanning() error {
	for _, f := range []struct {
		name, value string
		known       []string
	}{
		{"observe", d.Observe, []string{ObserveAlways, ObserveOnFailure, ObserveNever}},
		{"onNetworkError", d.OnNetworkError, []string{NetworkPark, NetworkRetry, NetworkAbort}},
	} {
		if f.value != "" && !slices.Contains(f.known, f.value) {
			return &FieldError{Field: f.name, Reason: fmt.Sprintf("%q is not one of %q", strict.Shown(f.value), f.known)}
		}
	}
	if n := d.ModelRetries; n != nil && (*n < 0 || *n > MaxModelRetries) {
		return &FieldError{Field: "modelRetries", Reason: fmt.Sprintf("must be 0 to %d", MaxModelRetries)}
	}
	switch {
	case len(d.OutputSchema) == 0:
	case d.Planner == PlannerPlan:
		return &FieldError{Field: "outputSchema", Reason: noSchemaOfPlan}
	default:
		if err := checkAnswers(d.OutputSchema); err != nil {
			return strict.Under("outputSchema", err)
		}
	}
	if d.Plan == nil {
		return nil
	}
	if d.Planner != PlannerPlan {
		return &FieldError{Field: "plan", Reason: fmt.Sprintf("needs planner %s, not %s", PlannerPlan, d.Planner)}
	}
	if err := d.Plan.Validate(); err != nil {
		return strict.Under("plan", err)
	}
	return strict.Under("plan", d.Plan.CheckTools(d.Tools))
}
