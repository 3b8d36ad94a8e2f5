package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/strict"
)

// Planning is how far a run with a plan is. It is folded from records alone; what a reply meant is in a Planned.
type Planning struct {
	Plan  *messages.Plan          `json:"plan,omitempty"`  // nil until it is ready
	Steps map[string]StepProgress `json:"steps,omitempty"` // by id, of steps that have begun or ended
	Calls []PlannedCall           `json:"calls,omitempty"` // that have a result, in the order of their ends

	Reply    *string `json:"reply,omitempty"`    // the last reply, until something follows from it
	Rejected string  `json:"rejected,omitempty"` // the reply before, which was not valid
	Invalid  int     `json:"invalid,omitempty"`  // replies in a row that were not valid

	Made []PlanAction `json:"made,omitempty"` // decisions, in order

	Unseen   []string        `json:"unseen,omitempty"`   // ids of steps that have ended since the last decision
	Decision record.Decision `json:"decision,omitempty"` // the last
	Reason   string          `json:"reason,omitempty"`   // of it
	FellBack bool            `json:"fellBack,omitempty"` // the last call failed, and the run continues without its reply
	Outages  int             `json:"outages,omitempty"`  // calls in a row that did not reach the model
	Pause    bool            `json:"pause,omitempty"`    // wait before the call is made again
	Cause    *messages.Cause `json:"cause,omitempty"`    // of that wait
}

// StepProgress is how far a step of the plan is.
type StepProgress struct {
	Status   messages.StepStatus `json:"status,omitempty"` // empty: it has begun
	Output   string              `json:"output,omitempty"`
	Reason   string              `json:"reason,omitempty"`   // why it failed or was skipped
	Forgiven bool                `json:"forgiven,omitempty"` // it failed, and the plan was changed for it
}

// PlannedCall is a step's call with its result.
type PlannedCall struct {
	Step   int                 `json:"step"`
	Call   messages.ToolCall   `json:"call"`
	Result messages.ToolResult `json:"result"`
}

// PlanAction is what was decided about the plan.
type PlanAction struct {
	After  int    `json:"after"` // how many of Calls were in by then
	Step   int    `json:"step"`
	Name   string `json:"name"`           // a record.Decision, or messages.ActionPlannerSkip
	ID     string `json:"id,omitempty"`   // of the plan's step, of a skip
	Plan   string `json:"plan,omitempty"` // the new one as JSON, shortened
	Reason string `json:"reason,omitempty"`
}

func (p *Planning) made(a PlanAction) {
	a.After, a.Reason = len(p.Calls), strict.Clip(a.Reason, maxReason)
	p.Made = append(p.Made, a)
}

func (p *Planning) clone() *Planning {
	if p == nil {
		return nil
	}
	c := *p
	c.Steps, c.Unseen = maps.Clone(p.Steps), slices.Clone(p.Unseen)
	return &c
}

// planning is s.Plan, made when it is needed first.
func (s *State) planning() *Planning {
	if s.Plan == nil {
		s.Plan = &Planning{}
	}
	return s.Plan
}

// StepID is the id of the plan's step that a call belongs to; empty in a run without a plan.
func (s *State) StepID(call string) string {
	if s.Plan == nil {
		return ""
	}
	return call
}

// purpose notes what the model call is for that begins now. One for the same again rejects the reply before it.
func (s *State) purpose(next messages.Purpose) {
	if next == "" {
		s.Purpose = ""
		return
	}
	p := s.planning()
	if p.Reply != nil && next == s.Purpose {
		p.Rejected = *p.Reply
		p.Invalid++
	} else {
		p.Rejected, p.Invalid = "", 0
	}
	p.Reply, p.FellBack = nil, false
	s.Purpose = next
}

func (p *Planning) replied(m *messages.Message) {
	text := m.Text()
	p.Reply, p.Outages = &text, 0
}

func (s *State) failed(r *record.ModelFailed) {
	switch r.Fallback {
	case record.FallbackContinue:
		s.Calling, s.planning().FellBack = false, true
	case record.FallbackRetry:
		s.planning().Outages++
	case record.FallbackPark:
		p := s.planning()
		p.Outages++
		p.Pause = true
		p.Cause = &messages.Cause{Code: r.Error.Code, Message: r.Error.Message, Provider: r.Provider, Attempt: p.Outages}
	default:
		s.Calling, s.Failure = false, &r.Error
	}
}

// planned folds a decision.
func (s *State) planned(r *record.Planned) {
	p := s.planning()
	p.Reply, p.Rejected, p.Invalid, p.FellBack, p.Unseen = nil, "", 0, false, nil
	p.Decision, p.Reason = r.Decision, r.Reason
	made := PlanAction{Step: r.Step, Name: string(r.Decision), Reason: r.Reason}
	if r.Plan != nil {
		if b, err := json.Marshal(r.Plan); err == nil {
			made.Plan = strict.Clip(string(b), maxPlanInput)
		}
	}
	p.made(made)
	if r.Plan == nil {
		return
	}
	p.Plan = r.Plan
	for _, id := range r.Renewed {
		delete(p.Steps, id)
	}
	if r.Decision != record.DecisionAdapt {
		return
	}
	for id, step := range p.Steps {
		if step.Status == messages.StepFailed {
			step.Forgiven = true
			p.Steps[id] = step
		}
	}
}

// beginStep opens the call of a step of the plan.
func (s *State) beginStep(r *record.StepStarted) error {
	var step *messages.PlanStep
	if s.Plan != nil && s.Plan.Plan != nil {
		step = s.Plan.Plan.Find(r.StepID)
	}
	if step == nil {
		return fmt.Errorf("the step %q is not in the plan", r.StepID)
	}
	args, err := s.Plan.arguments(step)
	if err != nil {
		return fmt.Errorf("the step %q: %w", r.StepID, err)
	}
	s.Step = r.Step
	s.Plan.set(r.StepID, StepProgress{})
	s.Open = append(s.Open, OpenCall{
		Call:    messages.ToolCall{ID: step.ID, Name: step.Tool, Arguments: args},
		Approve: s.Plan.Plan.NeedsApproval(step) || s.Agent.AsksFor(s.Tools, step.Tool),
	})
	return nil
}

// endStep takes the result of the step's call, if there is one.
func (s *State) endStep(r *record.StepEnded) error {
	if s.Plan == nil {
		return fmt.Errorf("the step %q is of no plan", r.StepID)
	}
	s.Step = max(s.Step, r.Step)
	end := StepProgress{Status: r.Status, Reason: r.Reason}
	if c := s.open(r.StepID); c != nil {
		if c.Result != nil {
			m := messages.Message{Content: c.Result.Content}
			end.Output = m.Text()
			s.Plan.Calls = append(s.Plan.Calls, PlannedCall{r.Step, c.Call, *c.Result})
			s.Plan.Unseen = append(s.Plan.Unseen, r.StepID)
		}
		s.Open = slices.DeleteFunc(s.Open, func(c OpenCall) bool { return c.Call.ID == r.StepID })
	} else if r.Status == messages.StepFailed {
		s.Plan.Unseen = append(s.Plan.Unseen, r.StepID)
	}
	if r.Status == messages.StepSkipped {
		s.Plan.made(PlanAction{Step: r.Step, Name: messages.ActionPlannerSkip, ID: r.StepID, Reason: r.Reason})
	}
	s.Plan.set(r.StepID, end)
	return nil
}

func (p *Planning) set(id string, to StepProgress) {
	if p.Steps == nil {
		p.Steps = map[string]StepProgress{}
	}
	p.Steps[id] = to
}

// maxArguments bounds a step's arguments once outputs are in them, in bytes.
const maxArguments = 1 << 20

// arguments are a step's args with the outputs of other steps in them.
func (p *Planning) arguments(step *messages.PlanStep) (string, error) {
	size := 0
	args, err := step.Resolve(func(id string) (string, bool) {
		done := p.Steps[id]
		if size += len(done.Output); size > maxArguments {
			return "", true
		}
		return done.Output, done.Status == messages.StepCompleted
	})
	switch {
	case err != nil:
		return "", err
	case size > maxArguments || len(args) > maxArguments:
		return "", &messages.FieldError{Field: "args", Reason: fmt.Sprintf("larger than %d bytes with the outputs in them", maxArguments)}
	}
	return args, nil
}
