package agent

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
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
	Format   *Format          // of the reply's text; nil: free
	Purpose  messages.Purpose // empty: a turn of the conversation in the transcript
	Recalled int              // of the Messages after the system's: those of earlier runs of the session, and of memory
	Summary  bool             // of the session's older part, before the first step; Step is 0
}

// Decide has records appended that have no effect outside, and then plans again.
type Decide struct {
	Records []record.Record
}

// Format asks for JSON, of a provider that can be asked for it.
type Format struct {
	Name   string          // of the schema
	Schema json.RawMessage // nil: any JSON object
}

// CallTools makes the open calls; the performer decides which of them run together.
type CallTools struct{}

// Park waits for a record from outside, holding no worker.
type Park struct {
	Parked record.Parked
	For    time.Duration // the wait expires so long from now; 0: when Parked says
}

// Finish ends the run.
type Finish struct {
	Status  messages.Status
	Result  string
	Summary string // of what was done; may be empty
	Err     *messages.RunError
	Before  []record.Record // that are appended with the end, such as the ends of a plan's steps
}

func (*CallModel) action() {}
func (*CallTools) action() {}
func (*Park) action()      {}
func (*Finish) action()    {}
func (*Decide) action()    {}

// Planners are all planners by the name that an agent calls them.
func Planners() map[string]Planner {
	return map[string]Planner{
		messages.PlannerTools: ToolCalling{},
		messages.PlannerJSON:  JSONProtocol{},
		messages.PlannerPlan:  PlanFirst{},
	}
}

// ToolCalling is the native tool-calling planner: ask the model, make the calls it wants, ask again with the
// results, until it answers without a call.
type ToolCalling struct{}

var _ Interpreter = ToolCalling{}

// Plan implements Planner.
func (ToolCalling) Plan(s *State) Action {
	step, end := next(s, func() string {
		return fmt.Sprintf("no final answer within the limit of steps, %d", s.Agent.Steps(s.Task.Limits))
	})
	if end != nil {
		return end
	}
	a := &CallModel{Step: step, Messages: s.Transcript, Tools: s.Tools}
	if schema := s.OutputSchema(); len(schema) > 0 && s.Continued == 0 { // the rest of an answer fits nothing
		a.Format = &Format{Name: "answer", Schema: schema}
	}
	return a
}

// Interpret implements Interpreter: calls and text are what the provider says they are.
func (ToolCalling) Interpret(_ *State, text string, m messages.Message) Reading {
	return Reading{Calls: m.Calls(), Answer: text}
}

// next is the step whose model call is to be made, or the action that comes before any.
func next(s *State, tooMany func() string) (step int, before Action) {
	switch {
	case s.Cancel != nil:
		return 0, &Finish{Status: messages.StatusCancelled, Err: &messages.RunError{
			Code: messages.CodeCancelled, Message: s.Cancel.Text(),
		}}
	case s.Failure != nil:
		return 0, &Finish{Status: messages.StatusFailed, Err: s.Failure}
	case len(s.Open) > 0:
		return 0, &CallTools{}
	case s.Calling:
		return s.Step, nil
	}
	if s.Transcript[len(s.Transcript)-1].Role == messages.RoleAssistant {
		if f := final(s); f.Status != messages.StatusCompleted || len(s.Unheard) == 0 || s.last() {
			return 0, f
		}
	}
	if s.last() {
		return 0, fail(messages.CodeMaxSteps, tooMany())
	}
	return s.Step + 1, nil
}

// final judges a reply without calls.
func final(s *State) *Finish {
	switch s.Stop {
	case messages.StopLength:
		return fail(messages.CodeModelTruncated, s.truncatedText())
	case messages.StopContentFilter:
		return fail(messages.CodeModelContentFilter, "the provider's content filter stopped the reply")
	case messages.StopError:
		return fail(messages.CodeModelInvalidOutput, "the provider ended the reply with an error")
	case messages.StopEnd, messages.StopToolCalls, messages.StopRefusal:
	}
	if s.Answer == "" {
		return fail(messages.CodeModelInvalidOutput, "the model answered with nothing")
	}
	return &Finish{Status: messages.StatusCompleted, Result: s.Answer}
}

func fail(code messages.Code, text string) *Finish {
	return &Finish{Status: messages.StatusFailed, Err: &messages.RunError{Code: code, Message: text}}
}
