package runner

import (
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
)

// What runs below have cost counts for the rule costAbove as it counts for the budget: to delegate is no way around it.
func TestCostOfRunsBelowIsAsked(t *testing.T) {
	x := &policyWork{}
	s := &agent.State{Cost: 0.5, Below: messages.Below{Cost: 1.25}, Held: record.Share{Cost: 7}}
	if got := x.asked(s, "mail", `{}`).Cost; got != 1.75 {
		t.Errorf("the run has cost %v", got)
	}
}
