package record

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

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
	Step     int            `json:"step"` // whose reply decided it; 0: no model was called
	Decision Decision       `json:"decision"`
	Reason   string         `json:"reason,omitempty"`
	Plan     *messages.Plan `json:"plan,omitempty"`     // of ready and adapt: the whole plan from now on
	Renewed  []string       `json:"renewed,omitempty"`  // of adapt: ids of steps that were replaced; they begin anew
	Fallback bool           `json:"fallback,omitempty"` // the model did not answer in time: a rule decided
	// Of ready and adapt, what the worker knew of the plan: the steps whose calls wait for an approval, also those that the agent
	// asks one for, and how many seconds calls of the tools of steps took on average, by the ids of steps.
	Approvals []string           `json:"approvals,omitempty"`
	Means     map[string]float64 `json:"means,omitempty"`
}

// Kind implements Record.
func (*Planned) Kind() Kind { return KindPlanned }

// Values of ModelFailed.Fallback.
const (
	FallbackContinue = "continue" // continue without the reply
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

		RequiredApprovals []string `json:"requiredApprovals,omitempty"` // ids of steps whose calls wait for an approval
		EstimatedDuration float64  `json:"estimatedDuration,omitempty"` // of the whole, in seconds; absent: not known
	}
	// PlanItem is a step as the event plan shows it.
	PlanItem struct {
		ID                string   `json:"id"`
		Description       string   `json:"description"`
		Tool              string   `json:"tool"`
		DependsOn         []string `json:"dependsOn,omitempty"`
		Critical          bool     `json:"critical"`
		EstimatedDuration float64  `json:"estimatedDuration,omitempty"` // in seconds; absent: not known

		Args              json.RawMessage `json:"args,omitempty"`              // an object; absent when there are none, or too many to show
		RequiredApprovals []string        `json:"requiredApprovals,omitempty"` // by whom or what for
	}
)

// maxPlanShown bounds the steps that the event plan shows, in bytes as JSON.
const maxPlanShown = 32 << 10

func (r *Planned) data() any {
	d := PlanData{Decision: r.Decision, Fallback: r.Fallback}
	d.Reason, d.Truncated = strict.Fit(r.Reason, messages.MaxEventArgs)
	if r.Plan == nil {
		return d
	}
	d.EstimatedDuration = r.duration()
	size := 0
	for i := range r.Plan.Steps {
		s := &r.Plan.Steps[i]
		item := PlanItem{
			ID: named(s.ID), Tool: named(s.Tool), DependsOn: s.DependsOn, Critical: s.IsCritical(), EstimatedDuration: r.estimate(s),
			RequiredApprovals: s.RequiredApprovals,
		}
		var cut bool
		item.Description, cut = strict.Fit(s.Description, messages.MaxEventName)
		switch args := strict.Canonical(s.Args); {
		case len(args) <= len(`{}`):
		case len(args) > messages.MaxEventArgs || !json.Valid(args):
			cut = true
		default:
			item.Args = args
		}
		b, err := json.Marshal(item)
		if size += len(b); err != nil || size > maxPlanShown {
			d.Truncated = true
			break
		}
		d.Steps, d.Truncated = append(d.Steps, item), d.Truncated || cut
		if r.Plan.NeedsApproval(s) || slices.Contains(r.Approvals, s.ID) {
			d.RequiredApprovals = append(d.RequiredApprovals, item.ID)
		}
	}
	return d
}

// estimate is how many seconds a step takes: as it is planned, or else as calls of its tool have taken; 0: not known.
func (r *Planned) estimate(s *messages.PlanStep) float64 {
	if s.EstimatedDuration > 0 {
		return s.EstimatedDuration
	}
	return r.Means[s.ID]
}

// duration is how many seconds the plan takes: as it is planned, or else along the longest chain of its steps; 0: of one of
// them it is not known.
func (r *Planned) duration() float64 {
	if r.Plan.EstimatedDuration > 0 {
		return r.Plan.EstimatedDuration
	}
	ends, last := make(map[string]float64, len(r.Plan.Steps)), 0.0
	for range r.Plan.Steps { // each round finds the ends of one more link; a log may hold a ring, which ends too
		for i := range r.Plan.Steps {
			s := &r.Plan.Steps[i]
			own := r.estimate(s)
			if own <= 0 {
				return 0
			}
			begins := 0.0
			for _, id := range s.DependsOn {
				begins = max(begins, ends[id])
			}
			ends[s.ID] = begins + own
			last = max(last, ends[s.ID])
		}
	}
	const millis = 1000
	return math.Round(last*millis) / millis
}
