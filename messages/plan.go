package messages

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/messages/strict"
)

// Limits of a plan.
const (
	MaxPlanSteps = 100
	maxPlan      = 256 << 10 // bytes as JSON
	maxPlanArgs  = 64 << 10  // bytes of one step's args
	maxPlanTime  = 30 * 24 * 60 * 60
	maxApprovals = 16
)

// Plan is what is to be done, as steps that may depend on each other.
type Plan struct {
	Steps             []PlanStep `json:"steps" minItems:"1" maxItems:"100"`
	EstimatedDuration float64    `json:"estimatedDuration,omitempty" minimum:"0" maximum:"2592000"` // of the whole, in seconds
	RequiredApprovals []string   `json:"requiredApprovals,omitempty"`                               // ids of steps that wait for an approval
}

// PlanStep is one call of a tool.
type PlanStep struct {
	ID                string          `json:"id" pattern:"^[A-Za-z0-9_-]{1,64}$"` // a token, unique in the plan
	Description       string          `json:"description" maxLength:"4096" pattern:"[^\\s]"`
	Tool              string          `json:"tool" pattern:"^[A-Za-z0-9_-]{1,64}$"`
	Args              json.RawMessage `json:"args,omitempty"`                                            // an object; its texts may hold ${steps.ID.output}
	DependsOn         []string        `json:"dependsOn,omitempty" uniqueItems:"true"`                    // ids of steps that must have completed
	RequiredApprovals []string        `json:"requiredApprovals,omitempty" maxItems:"16"`                 // by whom or what for; one is enough to make the step wait
	EstimatedDuration float64         `json:"estimatedDuration,omitempty" minimum:"0" maximum:"2592000"` // in seconds
	Critical          *bool           `json:"critical,omitempty"`                                        // default true: its failure ends the run
}

// IsCritical reports whether the step's failure ends the run.
func (s *PlanStep) IsCritical() bool { return s.Critical == nil || *s.Critical }

// NeedsApproval reports whether the step waits for an approval.
func (p *Plan) NeedsApproval(s *PlanStep) bool {
	return len(s.RequiredApprovals) > 0 || slices.Contains(p.RequiredApprovals, s.ID)
}

// Find returns the step of an id; nil: there is none.
func (p *Plan) Find(id string) *PlanStep {
	for i := range p.Steps {
		if p.Steps[i].ID == id {
			return &p.Steps[i]
		}
	}
	return nil
}

// Validate returns a *FieldError for the first field that is wrong. Which tools there are it does not know.
func (p *Plan) Validate() error {
	if n := len(p.Steps); n < 1 || n > MaxPlanSteps {
		return &FieldError{Field: "steps", Reason: fmt.Sprintf("must be 1 to %d steps, not %d", MaxPlanSteps, n)}
	}
	if err := checkSeconds("estimatedDuration", p.EstimatedDuration); err != nil {
		return err
	}
	at := make(map[string]int, len(p.Steps))
	for i := range p.Steps {
		s := &p.Steps[i]
		if err := s.check(); err != nil {
			return strict.Under(fmt.Sprintf("steps[%d]", i), err)
		}
		if j, twice := at[s.ID]; twice {
			return &FieldError{Field: fmt.Sprintf("steps[%d].id", i), Reason: fmt.Sprintf("%q is the id of steps[%d] already", s.ID, j)}
		}
		at[s.ID] = i
	}
	if len(p.RequiredApprovals) > len(p.Steps) {
		return &FieldError{Field: "requiredApprovals", Reason: "more than there are steps"}
	}
	for i, id := range p.RequiredApprovals {
		if _, ok := at[id]; !ok {
			return &FieldError{Field: fmt.Sprintf("requiredApprovals[%d]", i), Reason: fmt.Sprintf("no step has the id %q", strict.Shown(id))}
		}
	}
	if err := p.checkGraph(at); err != nil {
		return err
	}
	if strict.Larger(p, maxPlan) {
		return &FieldError{Field: "steps", Reason: fmt.Sprintf("the plan is larger than %d bytes as JSON", maxPlan)}
	}
	return nil
}

// CheckTools returns a *FieldError for the first step whose tool is not allowed.
func (p *Plan) CheckTools(allowed []string) error {
	for i := range p.Steps {
		if slices.Contains(allowed, p.Steps[i].Tool) {
			continue
		}
		known := strings.Join(allowed, ", ")
		if known == "" {
			known = "none"
		}
		return &FieldError{
			Field:  fmt.Sprintf("steps[%d].tool", i),
			Reason: fmt.Sprintf("Tool %q not found. Allowed tools: %s", strict.Shown(p.Steps[i].Tool), known),
		}
	}
	return nil
}

// check looks at a step by itself.
func (s *PlanStep) check() error {
	if err := strict.CheckToken("id", s.ID); err != nil {
		return err
	}
	if strings.TrimSpace(s.Description) == "" {
		return &FieldError{Field: "description", Reason: "is empty"}
	}
	if err := strict.CheckText("description", s.Description, maxDescription); err != nil {
		return err
	}
	if err := strict.CheckToken("tool", s.Tool); err != nil {
		return err
	}
	if err := s.checkArgs(); err != nil {
		return err
	}
	if len(s.RequiredApprovals) > maxApprovals {
		return &FieldError{Field: "requiredApprovals", Reason: fmt.Sprintf("more than %d", maxApprovals)}
	}
	for i, a := range s.RequiredApprovals {
		field := fmt.Sprintf("requiredApprovals[%d]", i)
		if a == "" {
			return &FieldError{Field: field, Reason: "is empty"}
		}
		if err := strict.CheckText(field, a, maxLabel); err != nil {
			return err
		}
	}
	return checkSeconds("estimatedDuration", s.EstimatedDuration)
}

func (s *PlanStep) checkArgs() error {
	switch {
	case len(s.Args) == 0:
		return nil
	case len(s.Args) > maxPlanArgs:
		return &FieldError{Field: "args", Reason: fmt.Sprintf("larger than %d bytes", maxPlanArgs)}
	case s.Args[0] != '{':
		return &FieldError{Field: "args", Reason: "must be an object"}
	}
	// A plan that was not decoded may hold anything.
	var free json.RawMessage
	return strict.Under("args", strict.DecodeDepth(strict.Body, maxTaskDepth, s.Args, &free))
}

func checkSeconds(field string, s float64) error {
	if s < 0 || s > maxPlanTime || math.IsNaN(s) {
		return &FieldError{Field: field, Reason: fmt.Sprintf("must be 0 to %d seconds", maxPlanTime)}
	}
	return nil
}

// checkGraph looks at what the steps say of each other.
func (p *Plan) checkGraph(at map[string]int) error {
	for i := range p.Steps {
		s := &p.Steps[i]
		for j, id := range s.DependsOn {
			field := fmt.Sprintf("steps[%d].dependsOn[%d]", i, j)
			switch _, ok := at[id]; {
			case !ok:
				return &FieldError{Field: field, Reason: fmt.Sprintf("no step has the id %q", strict.Shown(id))}
			case slices.Index(s.DependsOn, id) != j:
				return &FieldError{Field: field, Reason: fmt.Sprintf("%q is named twice", id)}
			}
		}
	}
	if cycle := p.cycle(at); cycle != nil {
		return &FieldError{
			Field:  fmt.Sprintf("steps[%d].dependsOn", at[cycle[0]]),
			Reason: strict.Clip("the steps wait for each other: "+strings.Join(cycle, " -> "), strict.MaxPath),
		}
	}
	for i := range p.Steps {
		if err := p.checkReferences(i, at); err != nil {
			return err
		}
	}
	return nil
}

// cycle is a ring of dependencies, its first step named again at the end; nil: there is none.
func (p *Plan) cycle(at map[string]int) []string {
	const begun, done = 1, 2
	mark := make([]int, len(p.Steps))
	var trail []string
	var visit func(i int) []string
	visit = func(i int) []string {
		id := p.Steps[i].ID
		switch mark[i] {
		case done:
			return nil
		case begun:
			return append(slices.Clone(trail[slices.Index(trail, id):]), id)
		}
		mark[i] = begun
		trail = append(trail, id)
		for _, d := range p.Steps[i].DependsOn {
			if ring := visit(at[d]); ring != nil {
				return ring
			}
		}
		trail = trail[:len(trail)-1]
		mark[i] = done
		return nil
	}
	for i := range p.Steps {
		if ring := visit(i); ring != nil {
			return ring
		}
	}
	return nil
}

// checkReferences makes sure that a step refers only to steps that have ended before it begins.
func (p *Plan) checkReferences(i int, at map[string]int) error {
	s := &p.Steps[i]
	ids, err := s.References()
	if err != nil {
		return strict.Under(fmt.Sprintf("steps[%d]", i), err)
	}
	if len(ids) == 0 {
		return nil
	}
	before := map[string]bool{}
	queue := slices.Clone(s.DependsOn)
	for len(queue) > 0 {
		id := queue[0]
		queue = queue[1:]
		if !before[id] {
			before[id] = true
			queue = append(queue, p.Steps[at[id]].DependsOn...)
		}
	}
	for _, id := range ids {
		field := fmt.Sprintf("steps[%d].args", i)
		switch _, ok := at[id]; {
		case !ok:
			return &FieldError{Field: field, Reason: fmt.Sprintf("${steps.%s.output}: no step has the id %q", strict.Shown(id), strict.Shown(id))}
		case !before[id]:
			return &FieldError{Field: field, Reason: fmt.Sprintf("${steps.%s.output}: the step must depend on %q to use its output", strict.Shown(id), strict.Shown(id))}
		}
	}
	return nil
}

// DecodePlan reads a plan strictly and checks it. The error is a *FieldError.
func DecodePlan(data []byte) (*Plan, error) {
	var p Plan
	if len(data) > maxPlan {
		return nil, &FieldError{Field: "plan", Reason: fmt.Sprintf("larger than %d bytes", maxPlan)}
	}
	if err := strict.DecodeDepth("plan", maxTaskDepth, data, &p); err != nil {
		return nil, err
	}
	return &p, p.Validate()
}

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
		if err := CheckSchema(d.OutputSchema); err != nil {
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
