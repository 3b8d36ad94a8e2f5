package cli

import (
	"fmt"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// planned tells of the plan and of what is decided about it.
func (r *run) planned(d record.PlanData) line {
	l := line{mark: info}
	switch d.Decision {
	case record.DecisionReady, record.DecisionAdapt:
		ids := make([]string, len(d.Steps))
		for i, s := range d.Steps {
			ids[i] = visible(s.ID)
		}
		l.text = "plan: " + strings.Join(ids, ", ")
		if d.Decision == record.DecisionAdapt {
			l.text = "plan changed: " + strings.Join(ids, ", ")
		}
		if d.Truncated {
			l.text += " …"
		}
	case record.DecisionContinue, record.DecisionComplete, record.DecisionAbort:
		l.text, l.minor = "plan: "+string(d.Decision), d.Decision == record.DecisionContinue && !d.Fallback
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
