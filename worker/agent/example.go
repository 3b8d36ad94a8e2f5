package agent

import (
	"fmt"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
)

// LearnExample keeps the plan of a run that is about to complete as an example. It comes before the run's end, once.
type LearnExample struct {
	Text string
}

func (*LearnExample) action() {}

// Bounds of an example, in bytes: a run is told some of them, within the tokens of its policy.
const (
	maxExampleTask    = 1 << 10
	maxExampleStep    = 256 // of what a step does, and of its arguments
	maxExampleSteps   = 20
	maxExampleOutcome = 1 << 10
)

// learns reports whether the run becomes an example before it ends so. A person need not have rated it up.
func (s *State) learns(end *Finish) bool {
	p := s.Agent.LearnPolicy()
	return p != nil && !p.Rated && !s.Learned && end.Status == messages.StatusCompleted && s.hasPlan()
}

// hasPlan reports whether the run has a plan.
func (s *State) hasPlan() bool { return s.Plan != nil && s.Plan.Plan != nil }

// Example is what other runs are told about one that completed: the task, the steps of the plan with their tools and how each ended, and the
// outcome. It is empty for a run without a plan. Pure.
func (s *State) Example(outcome string) string {
	if !s.hasPlan() {
		return ""
	}
	var b strings.Builder
	b.WriteString("A task that was completed, and the plan that did it.\n")
	fmt.Fprintf(&b, "Task: %s\nPlan:\n", strict.Clip(strings.TrimSpace(s.Task.Input.Text()), maxExampleTask))
	steps := s.Plan.Plan.Steps
	for i := range steps[:min(len(steps), maxExampleSteps)] {
		step := &steps[i]
		fmt.Fprintf(&b, "%d. %s: %s [%s] %s", i+1, step.ID, strict.Clip(step.Description, maxExampleStep), step.Tool, strict.Clip(string(step.Args), maxExampleStep))
		if len(step.DependsOn) > 0 {
			fmt.Fprintf(&b, " after %s", strings.Join(step.DependsOn, ", "))
		}
		if at := s.Plan.Steps[step.ID]; at.Status != "" && at.Status != messages.StepCompleted {
			fmt.Fprintf(&b, " (%s)", at.Status)
		}
		b.WriteString("\n")
	}
	if more := len(steps) - maxExampleSteps; more > 0 {
		fmt.Fprintf(&b, "and %d more steps\n", more)
	}
	fmt.Fprintf(&b, "Outcome: %s", strict.Clip(strings.TrimSpace(outcome), maxExampleOutcome))
	return b.String()
}
