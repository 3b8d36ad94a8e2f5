package messages

import "encoding/json"

// Decision is what was decided about a plan.
type Decision string

// Decisions. Ready comes first, once; the others after steps have ended.
const (
	DecisionReady    Decision = "ready"
	DecisionContinue Decision = "continue"
	DecisionAdapt    Decision = "adapt"
	DecisionComplete Decision = "complete"
	DecisionAbort    Decision = "abort"
)

// Planned is a decision about the run's plan. It is in the log in full, so that a later reading of the reply behind
// it changes nothing.
type Planned struct {
	Step     int      `json:"step"` // whose reply decided it; 0: nobody was asked
	Decision Decision `json:"decision"`
	Reason   string   `json:"reason,omitempty"`
	Plan     *Plan    `json:"plan,omitempty"`     // of ready and adapt: the whole plan from now on
	Renewed  []string `json:"renewed,omitempty"`  // of adapt: ids of steps that were replaced; they begin anew
	Fallback bool     `json:"fallback,omitempty"` // the model did not answer in time: a rule decided
}

// Kind implements Record.
func (*Planned) Kind() Kind { return KindPlanned }

// Purpose says what a model call is for. The empty one is a turn of native tool calling.
type Purpose string

// Purposes of the calls of planner "plan".
const (
	PurposePlan    Purpose = "plan"
	PurposeObserve Purpose = "observe"
	PurposeSummary Purpose = "summary"
)

// Values of ModelFailed.Fallback.
const (
	FallbackContinue = "continue" // go on without the reply
	FallbackRetry    = "retry"    // make the call again
	FallbackPark     = "park"     // wait, then make the call again
)

type (
	// PlanData is the data of plan.
	PlanData struct {
		Decision  Decision   `json:"decision"`
		Reason    string     `json:"reason,omitempty"`
		Fallback  bool       `json:"fallback,omitempty"`
		Steps     []PlanItem `json:"steps,omitempty"`     // ready and adapt only
		Truncated bool       `json:"truncated,omitempty"` // steps or what they say are shortened
	}
	// PlanItem is a step as the event plan shows it.
	PlanItem struct {
		ID                string   `json:"id"`
		Description       string   `json:"description"`
		Tool              string   `json:"tool"`
		DependsOn         []string `json:"dependsOn,omitempty"`
		Critical          bool     `json:"critical"`
		EstimatedDuration float64  `json:"estimatedDuration,omitempty"` // in seconds
	}
)

// maxPlanShown bounds the steps that the event plan shows, in bytes as JSON.
const maxPlanShown = 32 << 10

func (r *Planned) data() PlanData {
	d := PlanData{Decision: r.Decision, Fallback: r.Fallback}
	d.Reason, d.Truncated = fit(r.Reason, maxEventArgs)
	if r.Plan == nil {
		return d
	}
	size := 0
	for i := range r.Plan.Steps {
		s := &r.Plan.Steps[i]
		item := PlanItem{
			ID: named(s.ID), Tool: named(s.Tool), DependsOn: s.DependsOn, Critical: s.IsCritical(), EstimatedDuration: s.EstimatedDuration,
		}
		var cut bool
		item.Description, cut = fit(s.Description, maxEventName)
		b, err := json.Marshal(item)
		if size += len(b); err != nil || size > maxPlanShown {
			d.Truncated = true
			break
		}
		d.Steps, d.Truncated = append(d.Steps, item), d.Truncated || cut
	}
	return d
}
