package cli

import (
	"fmt"
	"strings"

	"github.com/longshore-run/longshore/messages"
)

// planned tells of the plan and of what is decided about it.
func (r *run) planned(d messages.PlanData) line {
	l := line{mark: info}
	switch d.Decision {
	case messages.DecisionReady, messages.DecisionAdapt:
		ids := make([]string, len(d.Steps))
		for i, s := range d.Steps {
			ids[i] = visible(s.ID)
		}
		l.text = "plan: " + strings.Join(ids, ", ")
		if d.Decision == messages.DecisionAdapt {
			l.text = "plan changed: " + strings.Join(ids, ", ")
		}
		if d.Truncated {
			l.text += " …"
		}
	case messages.DecisionContinue, messages.DecisionComplete, messages.DecisionAbort:
		l.text, l.minor = "plan: "+string(d.Decision), d.Decision == messages.DecisionContinue && !d.Fallback
	default:
		return line{}
	}
	if d.Fallback {
		l.mark = attention
	}
	if d.Reason != "" {
		l.text += ": " + d.Reason
	}
	return l
}

// ofPlan reports whether a step is one of a plan and not a turn.
func ofPlan(d *messages.Step) bool {
	return d.StepID != "" && d.StepID != fmt.Sprintf("step-%d", d.Step)
}

// planStepEnded tells of a step of the plan that did not complete; of the others the call tells.
func planStepEnded(d *messages.Step) line {
	if d.Status == messages.StepCompleted {
		return line{}
	}
	l := line{mark: attention, text: fmt.Sprintf("step %s %s", visible(d.StepID), d.Status)}
	if d.Status == messages.StepSkipped && d.Reason != "" {
		l.text += ": " + d.Reason
	}
	return l
}
