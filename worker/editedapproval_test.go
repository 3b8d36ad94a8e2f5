package worker_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// A call is approved with other arguments: it is made with them, once, the events say who changed what, and the model is told.
func TestApprovalWithOtherArguments(t *testing.T) {
	s := openSite(t, &messages.Approve{Edit: []string{"wreck"}})
	s.add("first")
	run := s.begin("wreck it")
	a := s.asked(run)
	if !a.Editable {
		t.Fatalf("waits: %+v", a)
	}
	d := dispatcher.Decision{Call: a.Call, Hash: a.Hash, By: "ann", Reason: "not the shed", Control: "x1"}
	for given, why := range map[string]string{
		`{"what":7}`:             "do not fit the tool wreck",
		`{}`:                     "do not fit the tool wreck",
		`{"what":"b","more":""}`: "do not fit the tool wreck",
		`["b"]`:                  "must be an object",
		`{"what":"` + strings.Repeat("b", messages.MaxEdited) + `"}`: "larger than",
	} {
		d.Arguments = json.RawMessage(given)
		_, err := s.client.Approvals().Approve(t.Context(), run, d)
		if field, ok := errors.AsType[*messages.FieldError](err); !ok || field.Field != "arguments" || !strings.Contains(field.Reason, why) {
			t.Errorf("%.40s: %v", given, err)
		}
	}
	d.Arguments = json.RawMessage(`{ "what": "barn" }`)
	if _, err := s.client.Approvals().Deny(t.Context(), run, d); err == nil {
		t.Error("a denial took arguments")
	}
	if _, err := s.client.Approvals().Approve(t.Context(), run, d); err != nil {
		t.Fatal(err)
	}
	r := s.result(run)
	if r.Status != messages.StatusCompleted || s.wreck.calls.Load() != 1 {
		t.Fatalf("%+v after %d calls", r, s.wreck.calls.Load())
	}
	for _, act := range r.Actions {
		if act.Name == "wreck" && (act.Input != `{"what":"barn"}` || act.Output != "A person changed the arguments of this call to: {\"what\":\"barn\"}\n\nwreck barn") {
			t.Errorf("the call: %+v", act)
		}
	}
	if e := s.decided(run); e != (messages.ApprovalDecided{CallID: a.Call, Decision: messages.Approved, By: "ann", Reason: "not the shed", Arguments: `{"what":"barn"}`}) {
		t.Errorf("approval_decided: %+v", e)
	}
	var began messages.ToolExecution
	if err := json.Unmarshal(s.until(run, messages.EventToolExecutionStart).Data, &began); err != nil {
		t.Fatal(err)
	}
	if began.ToolName == "wreck" && !strings.Contains(began.Arguments, "barn") {
		t.Errorf("tool_execution_start: %+v", began)
	}
	if _, err := s.client.Approvals().Approve(t.Context(), run, d); err != nil {
		t.Errorf("the same decision again: %v", err)
	}
	d.Arguments = nil
	if _, err := s.client.Approvals().Approve(t.Context(), run, d); !errors.Is(err, dispatcher.ErrDecided) {
		t.Errorf("the same id without the arguments: %v", err)
	}
	s.forkTells(run)
}

// forkTells forks a run behind the call that was edited: the fork's model is told about it too, and the call is not made again.
func (s *site) forkTells(run messages.Ref) {
	s.t.Helper()
	fork, err := s.client.Runs().Fork(s.t.Context(), run, control.ForkRequest{At: 2})
	if err != nil {
		s.t.Fatal(err)
	}
	r := s.result(messages.Ref{Tenant: run.Tenant, Run: fork.ID})
	if len(r.Actions) == 0 || r.Actions[0].Input != `{"what":"barn"}` || !strings.HasPrefix(r.Actions[0].Output, "A person changed") || s.wreck.calls.Load() != 1 {
		s.t.Errorf("the fork: %+v after %d calls", r.Actions, s.wreck.calls.Load())
	}
}

// Arguments that nothing lets a person change are refused, and what rules forbid stays forbidden: an edit does not get round them.
func TestOtherArgumentsAreJudged(t *testing.T) {
	s := openSite(t, nil)
	s.add("first")
	run := s.begin("wreck it")
	a := s.asked(run)
	d := dispatcher.Decision{Call: a.Call, By: "ann", Arguments: json.RawMessage(`{"what":"barn"}`)}
	if _, err := s.client.Approvals().Approve(t.Context(), run, d); err == nil || !strings.Contains(err.Error(), "approve.edit of its agent") || a.Editable {
		t.Errorf("%v, editable: %v", err, a.Editable)
	}
	if s.wreck.calls.Load() != 0 {
		t.Error("it was called")
	}

	guarded := messages.Definition{
		Name: "guarded", Tools: []string{"wreck", "look"}, Approve: &messages.Approve{Edit: []string{"wreck"}},
		Policy: &messages.Policy{Content: []messages.ContentRule{{
			Name: "church", At: []messages.PolicyPoint{messages.PolicyArguments}, Tools: []string{"wreck"}, Pattern: "church", Action: messages.PolicyBlock,
		}}},
	}
	guarded.SetDefaults()
	if _, err := s.client.Agents().Apply(t.Context(), guarded, "ann", nil); err != nil {
		t.Fatal(err)
	}
	run = s.submit(messages.Task{Agent: "guarded", Input: messages.TextInput("wreck it")})
	d.Call, d.Arguments = s.asked(run).Call, json.RawMessage(`{"what":"church"}`)
	if _, err := s.client.Approvals().Approve(t.Context(), run, d); err != nil {
		t.Fatal(err)
	}
	r := s.result(run)
	if s.wreck.calls.Load() != 0 || len(r.Actions) == 0 || r.Actions[0].Code != messages.CodePolicy {
		t.Errorf("%+v after %d calls", r.Actions, s.wreck.calls.Load())
	}
}
