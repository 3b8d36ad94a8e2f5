package agent

import (
	"fmt"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/strict"
)

// asking is the open call that the run asks an approval for in this very park; nil: it asks for none.
func (s *State) asking(park uint64) *OpenCall {
	if s.Parked == nil || s.Parked.Approval == nil || s.Head.ParkSeq != park {
		return nil
	}
	return s.open(s.Parked.Call)
}

// decided takes a decision about the call that the run waits for. What was decided about another call, or about other
// arguments, does not count, and the run asks again.
func (s *State) decided(r *record.Decided) {
	c := s.asking(r.Park)
	if c == nil || !c.Approve || c.Answer != nil || !r.Matches(s.Parked) || r.About() != messages.HashArguments(c.Call.Arguments) {
		return
	}
	if !r.Denied {
		c.Approve = false
		if r.Edits() {
			c.Call.Arguments, c.Edited = r.Arguments, true
		}
		return
	}
	c.refuse(messages.CodeApprovalDenied, r.Text())
}

// Editable reports whether a call that waits may be approved with other arguments: the agent, or the rule that asks, must say so, and
// a rule that does not forbids it.
func (s *State) Editable(c *OpenCall) bool {
	switch {
	case c.Judged && c.Fixed:
		return false
	case c.Judged && !s.Agent.AsksFor(s.Tools, c.Call.Name):
		return true
	default:
		return s.Agent.LetsEdit(c.Call.Name)
	}
}

// toldOf is the result of a call as the model is told it: that a person has changed the call's arguments is said first. Outputs of a plan's
// steps are arguments of others, and stay as they are.
func (s *State) toldOf(c *OpenCall, r *record.ToolReturned) *messages.ToolResult {
	if !c.Edited {
		return &r.Result
	}
	s.Edited.add(CallKey(r.Step, c.Call.ID), c.Call.Arguments)
	if s.Plan != nil {
		return &r.Result
	}
	result := r.Result
	note := "A person changed the arguments of this call to: " + strict.Clip(c.Call.Arguments, messages.MaxEventText) + "\n\n"
	result.Content = slices.Concat(messages.TextContent(note), r.Result.Content)
	return &result
}

// lapsed takes the end of the time for an approval; false: the park was for something else.
func (s *State) lapsed(r *record.Expired) bool {
	c := s.asking(r.Park)
	if c == nil {
		return false
	}
	if c.Approve && c.Answer == nil {
		c.refuse(messages.CodeApprovalExpired, messages.TextLapsed)
	}
	return true
}

func (c *OpenCall) refuse(code messages.Code, text string) {
	c.Refused = code
	c.Answer = &messages.ToolResult{CallID: c.Call.ID, Content: messages.TextContent(text), IsError: true}
}

// judge takes what a rule made of the run's input, a reply, or a call.
func (s *State) judge(r *record.PolicyApplied) {
	c := s.open(r.Call)
	switch {
	case r.Action == messages.PolicyBlock && (r.Point == messages.PolicyReply || r.Point == messages.PolicyInput):
		s.fail(messages.CodePolicy, r.Reason)
	case c == nil || c.Result != nil || c.Answer != nil: // it is reported, and no longer changes anything
	case r.Action == messages.PolicyBlock:
		c.refuse(messages.CodePolicy, "The call was not made: "+r.Reason+".")
	case r.Action == messages.PolicyAsk && !c.Judged:
		c.Approve, c.Judged, c.Fixed = true, true, !r.Edit
	case r.Arguments != "":
		c.Call.Arguments = r.Arguments
	}
}

// refusal is why a run ends for a call that was not approved.
func refusal(tool, text string) string {
	return fmt.Sprintf("the call of %s was not made: %s", tool, text)
}
