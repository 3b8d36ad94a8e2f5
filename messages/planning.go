package messages

import (
	"fmt"
	"maps"
	"slices"
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

// maxPrompt bounds a template, in bytes.
const maxPrompt = 64 << 10

// checkPlanning looks at what counts for planner "plan". None of it has a default that is filled in, so agents of
// other planners stay as they are written.
func (d *Definition) checkPlanning() error {
	for _, f := range []struct {
		name, value string
		known       []string
	}{
		{"observe", d.Observe, []string{ObserveAlways, ObserveOnFailure, ObserveNever}},
		{"onNetworkError", d.OnNetworkError, []string{NetworkPark, NetworkRetry, NetworkAbort}},
		{"onInvalidOutput", d.OnInvalidOutput, []string{OnErrorModel, OnErrorFail}},
	} {
		if f.value != "" && !slices.Contains(f.known, f.value) {
			return &FieldError{f.name, fmt.Sprintf("%q is not one of %q", shown(f.value), f.known)}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Prompts)) {
		text := d.Prompts[name]
		field := "prompts." + shown(name)
		if known := []Purpose{PurposePlan, PurposeObserve, PurposeSummary}; !slices.Contains(known, Purpose(name)) {
			return &FieldError{field, fmt.Sprintf("is not one of %q", known)}
		}
		if text == "" {
			return &FieldError{field, "is empty"}
		}
		if err := checkText(field, text, maxPrompt); err != nil {
			return err
		}
	}
	if d.Plan == nil {
		return nil
	}
	if d.Planner != PlannerPlan {
		return &FieldError{"plan", fmt.Sprintf("needs planner %s, not %s", PlannerPlan, d.Planner)}
	}
	if err := d.Plan.Validate(); err != nil {
		return under("plan", err)
	}
	return under("plan", d.Plan.CheckTools(d.Tools))
}
