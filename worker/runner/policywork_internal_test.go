package runner

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/policy"
)

const address = "ann@example.com"

// content is a policy that looks for addresses at some points.
func content(action string, at ...messages.PolicyPoint) *messages.Policy {
	return &messages.Policy{Content: []messages.ContentRule{{Name: "m", At: at, Category: "email", Action: action}}}
}

// unreadable is a policy that this version of a worker does not understand.
func unreadable() *messages.Policy {
	return &messages.Policy{Content: []messages.ContentRule{{Name: "m", Pattern: "("}}}
}

// newPolicyWork is the rules of a run whose agent has a policy, and the run's state, with one open call.
func newPolicyWork(t *testing.T, p *messages.Policy, arguments string) (*policyWork, *agent.State) {
	t.Helper()
	j, _ := newJob(t, Ticket{})
	d := ownAgent()
	d.Policy = p
	s := &agent.State{Agent: d, Step: 1, Open: []agent.OpenCall{{Call: messages.ToolCall{ID: "c1", Name: "pay", Arguments: arguments}}}}
	return &policyWork{job: j, calls: &callBook{job: j}, state: func() *agent.State { return s }}, s
}

// With rules that cannot be read, wherever they come from, a run makes no call and ends, and a task is refused before its run begins.
func TestPolicyWorkWithUnreadableRules(t *testing.T) {
	for name, set := range map[string]func(*policyWork, *agent.State){
		"of the agent": func(_ *policyWork, s *agent.State) { s.Agent.Policy = unreadable() },
		"of the operator": func(x *policyWork, _ *agent.State) {
			x.cfg.Policies = func(string) []policy.Layer { return []policy.Layer{{Source: "fleet", Policy: unreadable()}} }
		},
		"of the parent": func(_ *policyWork, s *agent.State) {
			s.Parent = &record.Parent{Rules: []record.RulesFor{{Agent: "boss", Policy: unreadable()}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			x, s := newPolicyWork(t, nil, `{}`)
			set(x, s)
			for _, next := range []agent.Action{&agent.CallModel{}, &agent.CallTools{}} {
				end, ok := x.beforeCalls(s, next).Instead.(*agent.Finish)
				if !ok || end.Status != messages.StatusFailed || end.Err.Code != messages.CodePolicy || !strings.Contains(end.Err.Message, "missing closing )") {
					t.Errorf("instead of %T: %+v", next, end)
				}
			}
			if v := x.beforeCalls(s, &agent.Finish{}); !v.Passes() {
				t.Errorf("the run may not end: %+v", v)
			}
			started := &record.Started{Agent: *s.Agent, Task: messages.Task{Input: messages.TextInput("go")}}
			if rs, blocked := x.input(started); blocked == nil || blocked.Code != messages.CodePolicy || len(rs) != 0 {
				t.Errorf("the task: %+v, %+v", blocked, rs)
			}
		})
	}
}

// Rules above a run hold for its calls as those of its own agent do.
func TestPolicyWorkOfAChild(t *testing.T) {
	x, s := newPolicyWork(t, nil, `{}`)
	s.Parent = &record.Parent{Rules: []record.RulesFor{{Agent: "boss", Policy: &messages.Policy{Tools: &messages.ToolRules{Deny: []string{"pay"}}}}}}
	v := x.beforeCalls(s, &agent.CallTools{})
	if len(v.Records) != 1 {
		t.Fatalf("records %+v", v.Records)
	}
	got := v.Records[0].(*record.PolicyApplied)
	if got.Source != "agent boss" || got.Action != messages.PolicyBlock || got.Call != "c1" || got.Tool != "pay" {
		t.Errorf("applied %+v", got)
	}
}

// A call whose arguments lose something is checked again with what is left of them; one that was judged before is not judged twice.
func TestPolicyWorkOfArguments(t *testing.T) {
	p := content("", messages.PolicyArguments)
	p.Approve = []messages.ApproveRule{{Name: "pays", Tool: "pay"}}
	x, s := newPolicyWork(t, p, `{"to":"`+address+`"}`)
	x.calls.args = map[string]json.RawMessage{"c1": json.RawMessage(`{}`)}
	v := x.beforeCalls(s, &agent.CallTools{})
	if len(v.Records) != 2 {
		t.Fatalf("records %+v", v.Records)
	}
	if got := v.Records[0].(*record.PolicyApplied); got.Arguments != `{"to":"[redacted]"}` {
		t.Errorf("arguments %+v", got)
	}
	if got := v.Records[1].(*record.PolicyApplied); got.Rule != "pays" {
		t.Errorf("a person is not asked: %+v", got)
	}
	if _, known := x.calls.args["c1"]; known {
		t.Error("the arguments of before count as checked")
	}
	s.Open[0].Judged, s.Open[0].Call.Arguments = true, `{"to":"[redacted]"}`
	if v := x.beforeCalls(s, &agent.CallTools{}); len(v.Records) != 0 {
		t.Errorf("judged twice: %+v", v.Records)
	}
	s.Open[0].Judged, s.Open[0].Started = false, "id1"
	if v := x.beforeCalls(s, &agent.CallTools{}); len(v.Records) != 0 {
		t.Errorf("a call that has begun is judged: %+v", v.Records)
	}
}

// Nothing of a task is kept of which any part is blocked.
func TestPolicyWorkBlocksATask(t *testing.T) {
	step := func(text, args string) *messages.Plan {
		return &messages.Plan{Steps: []messages.PlanStep{{ID: "one", Description: text, Args: json.RawMessage(args)}}}
	}
	for name, task := range map[string]messages.Task{
		"by its input":              {Input: messages.TextInput("to " + address)},
		"by its facts":              {Input: messages.TextInput("go"), Context: json.RawMessage(`{"to":"` + address + `"}`)},
		"by a step of its plan":     {Input: messages.TextInput("go"), Plan: step("tell "+address, `{}`)},
		"by arguments of that step": {Input: messages.TextInput("go"), Plan: step("tell", `{"to":"`+address+`"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			x, s := newPolicyWork(t, content(messages.PolicyBlock, messages.PolicyInput), `{}`)
			started := &record.Started{Agent: *s.Agent, Task: task}
			rs, blocked := x.input(started)
			if blocked == nil || blocked.Code != messages.CodePolicy || !strings.HasPrefix(blocked.Message, "the task's input: ") {
				t.Errorf("refused with %+v", blocked)
			}
			if len(rs) != 1 || rs[0].(*record.PolicyApplied).Action != messages.PolicyBlock {
				t.Errorf("records %+v", rs)
			}
			want := messages.Task{Input: messages.TextInput(withheld)}
			if diff := cmp.Diff(want, started.Task); diff != "" {
				t.Errorf("the task (-want +got):\n%s", diff)
			}
		})
	}
}

// A reply loses in its thoughts what it loses in its text, and their signature with it; what is blocked there is left empty.
func TestPolicyWorkOfThoughts(t *testing.T) {
	for action, want := range map[string]string{"": "about [redacted]", messages.PolicyBlock: ""} {
		x, s := newPolicyWork(t, content(action, messages.PolicyReply), `{}`)
		m := messages.Message{Role: messages.RoleAssistant, Content: []messages.Block{
			{Reasoning: &messages.Reasoning{Family: "f", Text: "about " + address, Signature: "of the text"}}, {Text: "done"},
		}}
		rs := x.reply(s, &m)
		if len(rs) != 1 || rs[0].(*record.PolicyApplied).Point != messages.PolicyReply {
			t.Errorf("%q: records %+v", action, rs)
		}
		if diff := cmp.Diff(&messages.Reasoning{Family: "f", Text: want}, m.Content[0].Reasoning); diff != "" {
			t.Errorf("%q: thoughts (-want +got):\n%s", action, diff)
		}
	}
}

// What rules judge as a whole is not shown while it is written.
func TestPolicyWorkShowsNothingUnjudged(t *testing.T) {
	for _, at := range []messages.PolicyPoint{messages.PolicyInput, messages.PolicyReply, messages.PolicyArguments, messages.PolicyOutput} {
		x, s := newPolicyWork(t, content("", at), `{}`)
		silent := at == messages.PolicyReply || at == messages.PolicyArguments
		if x.silent(s.Agent) != silent || x.withholds(s.Agent) != (at == messages.PolicyOutput) {
			t.Errorf("%s: silent %v, withholds %v", at, x.silent(s.Agent), x.withholds(s.Agent))
		}
	}
}
