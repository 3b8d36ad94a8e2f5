package agent_test

import (
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/agent"
)

// parked is the state of a run that waits for an approval of a call.
func parked(t *testing.T) (*agent.State, *record.Decided) {
	t.Helper()
	d := messages.Definition{Name: "a", Tools: []string{"rm"}}
	d.SetDefaults()
	call := messages.ToolCall{ID: "c1", Name: "rm", Arguments: `{"path":"x"}`}
	asked := messages.NewApproval("a", 1, "", call)
	asked.Editable = true
	records := []record.Record{
		&record.Started{
			Task: messages.Task{ID: "r", Tenant: "t", Input: messages.TextInput("x")}, Agent: d, Tools: []messages.ToolSpec{{Name: "rm", Destructive: true}},
		},
		&record.Claimed{Claim: "k"},
		&record.StepStarted{Step: 1},
		&record.ModelReplied{Step: 1, Stop: messages.StopToolCalls, Message: messages.Message{
			Role: messages.RoleAssistant, Content: []messages.Block{{ToolCall: &call}},
		}},
		&record.Parked{Reason: queue.ParkApproval, Call: "c1", Approval: asked},
	}
	s := &agent.State{}
	e := record.Entry{Head: record.Follow(record.Head{}, records...), Records: records}
	if err := s.Apply(e.At(7)); err != nil {
		t.Fatal(err)
	}
	return s, &record.Decided{ID: "x", Park: 7, Step: 1, Call: "c1", Hash: asked.Hash}
}

// Only a decision about this park, step, call and these arguments counts.
func TestDecisionsThatCount(t *testing.T) {
	for name, tc := range map[string]struct {
		record  func(d *record.Decided) record.Record
		approve bool // it still waits
		refused messages.Code
	}{
		"approved":        {func(d *record.Decided) record.Record { return d }, false, ""},
		"denied":          {func(d *record.Decided) record.Record { d.Denied = true; return d }, true, messages.CodeApprovalDenied},
		"another park":    {func(d *record.Decided) record.Record { d.Park = 6; return d }, true, ""},
		"another step":    {func(d *record.Decided) record.Record { d.Step = 2; return d }, true, ""},
		"another call":    {func(d *record.Decided) record.Record { d.Call = "c2"; return d }, true, ""},
		"other arguments": {func(d *record.Decided) record.Record { d.Hash = messages.HashArguments("{}"); return d }, true, ""},
		"no hash":         {func(d *record.Decided) record.Record { d.Hash = ""; return d }, true, ""},
		"an answer":       {func(d *record.Decided) record.Record { return &record.Answered{ID: "x", Park: d.Park} }, true, ""},
		"too late":        {func(d *record.Decided) record.Record { return &record.Expired{Park: d.Park, Call: "c1"} }, true, messages.CodeApprovalExpired},
		"another's time":  {func(*record.Decided) record.Record { return &record.Expired{Park: 3, Call: "c1"} }, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, d := parked(t)
			if err := s.Advance(tc.record(d)); err != nil {
				t.Fatal(err)
			}
			c := s.Open[0]
			if c.Approve != tc.approve || c.Refused != tc.refused || (c.Answer != nil) != (tc.refused != "") {
				t.Errorf("%+v", c)
			}
			// The first counts: nothing that comes later changes it.
			late := &record.Decided{ID: "y", Park: 7, Step: 1, Call: "c1", Hash: messages.HashArguments(`{"path":"x"}`), Denied: tc.refused == ""}
			if tc.approve && tc.refused == "" {
				return
			}
			if err := s.Advance(late); err != nil {
				t.Fatal(err)
			}
			if again := s.Open[0]; again.Approve != c.Approve || again.Refused != c.Refused {
				t.Errorf("then %+v", again)
			}
		})
	}
}

// with has a decision approve the call with other arguments.
func with(d *record.Decided, arguments string) *record.Decided {
	d.Asked, d.Arguments, d.Hash = d.Hash, arguments, messages.HashArguments(arguments)
	return d
}

// A person may approve a call with other arguments where the park says so. A decision that does not bind what was asked to what is to be
// made does not count, nor does it to a worker that knows no such decisions: its hash is of other arguments.
func TestDecisionsWithOtherArguments(t *testing.T) {
	const other = `{"path":"y"}`
	for name, tc := range map[string]struct {
		change func(*agent.State, *record.Decided)
		counts bool
	}{
		"allowed":              {func(*agent.State, *record.Decided) {}, true},
		"not allowed":          {func(s *agent.State, _ *record.Decided) { s.Parked.Approval.Editable = false }, false},
		"denied":               {func(_ *agent.State, d *record.Decided) { d.Denied = true }, false},
		"asked something else": {func(_ *agent.State, d *record.Decided) { d.Asked = messages.HashArguments("{}") }, false},
		"asked nothing":        {func(_ *agent.State, d *record.Decided) { d.Asked = "" }, false},
		"another hash":         {func(_ *agent.State, d *record.Decided) { d.Hash = messages.HashArguments("{}") }, false},
		"the hash of before":   {func(_ *agent.State, d *record.Decided) { d.Hash = d.Asked }, false},
		"without the fields":   {func(_ *agent.State, d *record.Decided) { d.Arguments, d.Asked = "", "" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, d := parked(t)
			tc.change(s, with(d, other))
			if err := s.Advance(d); err != nil {
				t.Fatal(err)
			}
			c := s.Open[0]
			if tc.counts && (c.Approve || !c.Edited || c.Call.Arguments != other) || !tc.counts && (!c.Approve || c.Edited || c.Call.Arguments == other || c.Answer != nil) {
				t.Errorf("%+v", c)
			}
		})
	}
}

// The model is told what was called, the result shows it, and a fork that keeps the call without the decision knows it too.
func TestWhatWasCalledIsTold(t *testing.T) {
	s, d := parked(t)
	const other = `{"path":"y"}`
	made := messages.ToolCall{ID: "c1", Name: "rm", Arguments: other}
	rest := []record.Record{
		&record.ToolStarted{Step: 1, Call: made, Edited: true},
		&record.ToolReturned{Step: 1, Name: "rm", Result: messages.ToolResult{CallID: "c1", Content: messages.TextContent("gone")}},
	}
	fork, _ := parked(t)
	fork.Parked = nil
	for _, r := range append([]record.Record{with(d, other)}, rest...) {
		if err := s.Advance(r); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range rest {
		if err := fork.Advance(r); err != nil {
			t.Fatal(err)
		}
	}
	const want = "A person changed the arguments of this call to: " + other + "\n\ngone"
	for name, s := range map[string]*agent.State{"the run": s, "a fork": fork} {
		last := s.Transcript[len(s.Transcript)-1]
		if last.Role != messages.RoleTool || last.Content[0].ToolResult.Shown() != want {
			t.Errorf("%s is told %+v", name, last)
		}
		end := s.Conclude(messages.Ref{Tenant: "t", Run: "r"}, &agent.Finish{Status: messages.StatusCompleted}, time.Now())
		if len(end.Actions) != 1 || end.Actions[0].Input != other {
			t.Errorf("%s shows %+v", name, end.Actions)
		}
	}
}

// Who asks decides whether the arguments may be changed: the agent, or a rule; a rule that does not say so forbids it.
func TestWhichCallsMayBeEdited(t *testing.T) {
	for name, tc := range map[string]struct {
		edit []string
		rule *record.PolicyApplied // that asks too
		asks bool                  // the agent does
		want bool
	}{
		"by default":                {nil, nil, true, false},
		"the agent lets it":         {[]string{"rm"}, nil, true, true},
		"the rule lets it":          {nil, &record.PolicyApplied{Edit: true}, false, true},
		"the rule does not":         {nil, &record.PolicyApplied{}, false, false},
		"the rule against agent":    {[]string{"rm"}, &record.PolicyApplied{}, true, false},
		"both ask, and one lets it": {nil, &record.PolicyApplied{Edit: true}, true, false},
		"both let it":               {[]string{"rm"}, &record.PolicyApplied{Edit: true}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := parked(t)
			s.Tools[0].Destructive = tc.asks
			s.Agent.Approve = &messages.Approve{Edit: tc.edit}
			if tc.rule != nil {
				tc.rule.Action, tc.rule.Call = messages.PolicyAsk, "c1"
				if err := s.Advance(tc.rule); err != nil {
					t.Fatal(err)
				}
			}
			if got := s.Editable(&s.Open[0]); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}
