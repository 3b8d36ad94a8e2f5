package report

import (
	"fmt"
	"strings"

	"github.com/longshore-run/longshore/dispatcher/cli/render"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// planned formats the plan and the decisions about it.
func (r *run) planned(d record.PlanData) render.Line {
	l := render.Line{Mark: render.Info}
	switch d.Decision {
	case record.DecisionReady, record.DecisionAdapt:
		ids := make([]string, len(d.Steps))
		for i, s := range d.Steps {
			ids[i] = render.Visible(s.ID)
		}
		l.Text = "plan: " + strings.Join(ids, ", ")
		if d.Decision == record.DecisionAdapt {
			l.Text = "plan changed: " + strings.Join(ids, ", ")
		}
		if d.Truncated {
			l.Text += " …"
		}
	case record.DecisionContinue, record.DecisionComplete, record.DecisionAbort:
		l.Text, l.Minor = "plan: "+string(d.Decision), d.Decision == record.DecisionContinue && !d.Fallback
	default:
		return render.Line{}
	}
	if d.Fallback {
		l.Mark = render.Attention
	}
	if d.Reason != "" {
		l.Text += ": " + d.Reason
	}
	return l
}

// ofPlan reports whether a step is one of a plan and not a turn.
func ofPlan(d *messages.Step) bool {
	return d.StepID != "" && d.StepID != fmt.Sprintf("step-%d", d.Step)
}

// planStepEnded formats a step of the plan that did not complete; completed ones show as calls.
func planStepEnded(d *messages.Step) render.Line {
	if d.Status == messages.StepCompleted {
		return render.Line{}
	}
	l := render.Line{Mark: render.Attention, Text: fmt.Sprintf("step %s %s", render.Visible(d.StepID), d.Status)}
	if d.Status == messages.StepSkipped && d.Reason != "" {
		l.Text += ": " + d.Reason
	}
	return l
}
