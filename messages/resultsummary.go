package messages

import (
	"fmt"
	"strings"

	"github.com/longshore-run/longshore/messages/strict"
)

// Bounds of a summary that we write.
const (
	maxSummaryFiles = 5
	maxSummaryWhy   = 1 << 10 // bytes of an error's text
)

// Summarise says in a sentence or two what the run did and how it ended, unless a model has said so already.
func (r *AgentResult) Summarise() {
	if r.Summary != "" {
		return
	}
	var s strings.Builder
	switch r.Status {
	case StatusCompleted:
		s.WriteString("Completed")
	case StatusCancelled:
		s.WriteString("Cancelled")
	default:
		s.WriteString("Failed")
	}
	calls, failed := 0, 0
	for i := range r.Actions {
		if r.Actions[i].Type != ActionTool {
			continue
		}
		if calls++; !r.Actions[i].OK {
			failed++
		}
	}
	if r.Steps == 0 {
		s.WriteString(" before the first step")
	} else {
		fmt.Fprintf(&s, " after %s", plural(r.Steps, "step"))
	}
	if calls > 0 {
		fmt.Fprintf(&s, " and %s", plural(calls, "tool call"))
	}
	if failed > 0 {
		fmt.Fprintf(&s, " (%d failed)", failed)
	}
	if r.Error != nil {
		fmt.Fprintf(&s, ": %s", strict.Clip(r.Error.Message, maxSummaryWhy))
		if r.Error.Code != "" && r.Error.Code != CodeCancelled {
			fmt.Fprintf(&s, " (%s)", r.Error.Code)
		}
	}
	s.WriteString(".")
	if n := len(r.Outputs); n > 0 {
		fmt.Fprintf(&s, " Files written: %s", strings.Join(r.Outputs[:min(n, maxSummaryFiles)], ", "))
		if n > maxSummaryFiles {
			fmt.Fprintf(&s, " and %d more", n-maxSummaryFiles)
		}
		s.WriteString(".")
	}
	r.Summary = s.String()
}

// InWords is what a run did in the words of its model: the summary of a run with a plan, else the answer; empty when it did
// not complete.
func (r *AgentResult) InWords() string {
	text, isText := r.Result.(string)
	planned := r.Provenance == nil || r.Provenance.Planner == PlannerPlan
	switch {
	case isText && text != "" && (r.Summary == "" || !planned):
		return text
	case r.Success && planned:
		return r.Summary
	default:
		return ""
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
