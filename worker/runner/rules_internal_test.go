package runner

import (
	"strings"
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

// A log line shows no part of a number that its end would cut.
func TestSaidIsRedactedBeforeItIsCut(t *testing.T) {
	x := &job{cfg: &Config{Redact: func(s string) string { return s }}}
	for shift := range 20 {
		text := x.said("err", strings.Repeat("x", maxSaid-40+shift)+" 4111 1111 1111 1111 and more of it").Value.String()
		if strings.Contains(text, "4111") {
			t.Errorf("it says %q", text[maxSaid-60:])
		}
	}
}
