package policy_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/policy"
)

// What events show and what a memory holds is what the strictest of the policies lets them; the fleet's cannot be loosened.
func TestTheStrictestShowsAndRemembers(t *testing.T) {
	const text, clean = "ask ann@example.com", "ask [redacted]"
	for name, tc := range map[string]struct {
		fleet, agent, planner string
		want                  record.Shown
		kept                  string
		ok                    bool
	}{
		"nothing said": {`{}`, `{}`, messages.PlannerTools, record.Shown{Redact: 1}, clean, true},
		"open":         {`{}`, `{"events":{"redact":false},"memory":"keep"}`, messages.PlannerTools, record.Shown{}, text, true},
		"closed by the fleet": {
			`{"events":{"redact":true},"memory":"redact"}`, `{"events":{"redact":false},"memory":"keep"}`, messages.PlannerTools, record.Shown{Redact: 1}, clean, true,
		},
		"opened by the fleet, closed by the agent": {
			`{"events":{"redact":false},"memory":"keep"}`, `{"events":{"redact":true},"memory":"drop"}`, messages.PlannerTools, record.Shown{Redact: 1}, "", false,
		},
		"left out by the fleet": {
			`{"events":{"inputs":"exclude"},"memory":"drop"}`, `{"events":{"inputs":"include","outputs":"exclude"},"memory":"keep"}`, messages.PlannerTools, record.Shown{Redact: 1, NoInputs: true, NoOutputs: true}, "", false,
		},
		"calls that are text": {`{}`, `{"events":{"inputs":"exclude"}}`, messages.PlannerJSON, record.Shown{Redact: 1, NoInputs: true, NoReplies: true}, clean, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := policy.NewRules(layer(t, "fleet", tc.fleet), layer(t, "agent a", tc.agent))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&tc.want, r.Shown(&messages.Definition{Planner: tc.planner})); diff != "" {
				t.Error(diff)
			}
			if kept, ok := r.Memory(text); kept != tc.kept || ok != tc.ok {
				t.Errorf("a memory holds %q, %v", kept, ok)
			}
		})
	}
	var none *policy.Rules
	if kept, ok := none.Memory(text); kept != clean || !ok || none.Shown(&messages.Definition{}).Redact != 1 {
		t.Errorf("without rules a memory holds %q, %v", kept, ok)
	}
}

func TestEventRulesAreChecked(t *testing.T) {
	for asJSON, want := range map[string]string{
		`{"events":{"inputs":"none"}}`:  "policy.events.inputs",
		`{"events":{"outputs":"drop"}}`: "policy.events.outputs",
		`{"memory":"forget"}`:           "policy.memory",
	} {
		var p messages.Policy
		if err := json.Unmarshal([]byte(asJSON), &p); err != nil {
			t.Fatal(err)
		}
		var field *messages.FieldError
		if err := p.Check("policy"); !errors.As(err, &field) || field.Field != want {
			t.Errorf("%s: %v", asJSON, err)
		}
	}
}

// A fork shows no more than the run that it came from.
func TestForksShowNoMore(t *testing.T) {
	no := false
	open := &messages.Definition{Planner: messages.PlannerTools, Policy: &messages.Policy{Events: &messages.EventRules{Redact: &no}}}
	for name, tc := range map[string]struct {
		was  *record.Shown
		by   *messages.Definition
		want record.Shown
	}{
		"of an old log":            {nil, open, record.Shown{Redact: 1}},
		"of a closed run":          {&record.Shown{Redact: 1, NoOutputs: true}, open, record.Shown{Redact: 1, NoOutputs: true}},
		"of an open run":           {&record.Shown{}, open, record.Shown{}},
		"of an open run by others": {&record.Shown{}, &messages.Definition{Planner: messages.PlannerTools}, record.Shown{Redact: 1}},
	} {
		if diff := cmp.Diff(&tc.want, tc.was.Forked(tc.by)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// The shortest of the rules that match a collection counts, whosever it is.
func TestTheShortestRetentionCounts(t *testing.T) {
	r, err := policy.NewRules(layer(t, "fleet", `{"retain":[{"collection":"*","for":"720h"},{"collection":"notes","for":"2h"}]}`),
		layer(t, "tenant acme", `{"retain":[{"collection":"fact*","for":"24h"}]}`), layer(t, "agent a", `{"retain":[{"collection":"facts","for":"1h"},{"collection":"notes","for":"3h"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for collection, want := range map[string]time.Duration{"facts": time.Hour, "facts2": 24 * time.Hour, "fac": 720 * time.Hour, "notes": 2 * time.Hour} {
		if got := r.Retention(collection); got != want {
			t.Errorf("%s is held for %v, want %v", collection, got, want)
		}
	}
	if r, err = policy.NewRules(layer(t, "fleet", `{"retain":[{"collection":"facts","for":"1h"}]}`)); err != nil || r.Retention("notes") != 0 {
		t.Errorf("%v, %v", r, err)
	}
	if r = nil; r.Retention("facts") != 0 {
		t.Error("without rules")
	}
}
