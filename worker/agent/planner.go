package agent

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// Planner decides what to do next. Pure: the same state always gives the same action.
type Planner interface {
	Plan(s *State) Action
}

// Action is *CallModel, *CallTools, *Park, *Decide or *Finish.
type Action interface{ action() }

// CallModel asks the model for the reply of a step.
type CallModel struct {
	Step     int
	Messages []messages.Message
	Tools    []messages.ToolSpec
	Purpose  messages.Purpose // empty: a turn of native tool calling
	Format   *Format          // of the reply's text; nil: free
}

// Format asks for a JSON object. It is what a model.Format says.
type Format struct {
	Name   string
	Schema json.RawMessage
}

// Decide has records appended that have no effect outside, and then plans again.
type Decide struct {
	Records []messages.Record
}

// CallTools makes the open calls; the performer decides which of them run together.
type CallTools struct{}

// Park waits for a record from outside, holding no worker.
type Park struct {
	Parked messages.Parked
	For    time.Duration // the wait expires so long from now; 0: when Parked says
}

// Finish ends the run.
type Finish struct {
	Status  messages.Status
	Result  string
	Summary string // of what was done; may be empty
	Err     *messages.RunError
	Before  []messages.Record // that are appended with the end, such as the ends of a plan's steps
}

func (*CallModel) action() {}
func (*CallTools) action() {}
func (*Park) action()      {}
func (*Finish) action()    {}
func (*Decide) action()    {}

// Planners are all planners by the name that an agent calls them.
func Planners() map[string]Planner {
	return map[string]Planner{messages.PlannerTools: ToolCalling{}, messages.PlannerPlan: PlanFirst{}}
}

// ToolCalling is the native tool-calling planner: ask the model, make the calls it wants, ask again with the
// results, until it answers without a call.
type ToolCalling struct{}

var _ Planner = ToolCalling{}

// Plan implements Planner.
func (ToolCalling) Plan(s *State) Action {
	switch {
	case s.Cancel != nil:
		return &Finish{Status: messages.StatusCancelled, Err: &messages.RunError{
			Code: messages.CodeCancelled, Message: s.Cancel.Text(),
		}}
	case s.Failure != nil:
		return &Finish{Status: messages.StatusFailed, Err: s.Failure}
	case len(s.Open) > 0:
		return &CallTools{}
	case s.Calling:
		return &CallModel{Step: s.Step, Messages: s.Transcript, Tools: s.Tools}
	}
	if last := &s.Transcript[len(s.Transcript)-1]; last.Role == messages.RoleAssistant {
		return final(s, last)
	}
	if limit := s.Agent.Steps(s.Task.Limits); s.Step >= limit {
		return fail(messages.CodeMaxSteps, fmt.Sprintf("no final answer within the limit of steps, %d", limit))
	}
	return &CallModel{Step: s.Step + 1, Messages: s.Transcript, Tools: s.Tools}
}

// final judges a reply without calls.
func final(s *State, m *messages.Message) *Finish {
	text := m.Text()
	switch s.Stop {
	case messages.StopLength:
		return fail(messages.CodeModelTruncated,
			fmt.Sprintf("the reply was cut at the limit of %d tokens; raise maxTokens of the agent", s.Agent.MaxTokens))
	case messages.StopContentFilter:
		return fail(messages.CodeModelContentFilter, "the provider's content filter stopped the reply")
	case messages.StopError:
		return fail(messages.CodeModelInvalidOutput, "the provider ended the reply with an error")
	case messages.StopEnd, messages.StopToolCalls, messages.StopRefusal:
	}
	if text == "" {
		return fail(messages.CodeModelInvalidOutput, "the model answered with nothing")
	}
	return &Finish{Status: messages.StatusCompleted, Result: text}
}

func fail(code messages.Code, text string) *Finish {
	return &Finish{Status: messages.StatusFailed, Err: &messages.RunError{Code: code, Message: text}}
}
