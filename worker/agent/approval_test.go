package agent_test

import (
	"testing"

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
