package agent

import (
	"fmt"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/strict"
)

// PlanFirst is the planner that makes a plan and then works it: the steps that wait for nothing run together, the
// model is asked how to continue when they have ended, and at the end a summary is written. A plan that is given needs
// no planning call; one that is given and not observed needs no model at all.
type PlanFirst struct{}

var _ Planner = PlanFirst{}

// Outages of the network that a plan's model call outlives, and how long it waits in each when it parks.
const (
	maxNetworkParks   = 10
	MaxNetworkRetries = 3           // rounds of attempts beyond the first; of any planner
	NetworkPause      = time.Minute // of any planner
)

// maxInvalid is how many replies in a row may be invalid before the run fails.
const maxInvalid = 2

// Fallback says what is done about a model call that failed for good, as ModelFailed.Fallback has it.
func Fallback(s *State, code messages.Code, network bool) string {
	if s.Purpose == "" {
		return ""
	}
	outages := s.planning().Outages
	switch on := s.Agent.OnNetworkError; {
	case network && on == messages.NetworkAbort:
		return ""
	case network && on == messages.NetworkRetry:
		if outages < MaxNetworkRetries {
			return record.FallbackRetry
		}
		return ""
	case network:
		if outages < maxNetworkParks {
			return record.FallbackPark
		}
		return ""
	case code == messages.CodeModelTimeout && s.Purpose != messages.PurposePlan:
		return record.FallbackContinue
	default:
		return ""
	}
}

// Plan implements Planner.
func (PlanFirst) Plan(s *State) Action {
	r := planRun{State: s, p: s.Plan}
	if r.p == nil {
		r.p = &Planning{}
	}
	a := r.next()
	if f, ends := a.(*Finish); ends {
		s.leave(f)
	}
	return a
}

// planRun is a state being planned on. It changes nothing.
type planRun struct {
	*State

	p *Planning
}

func (r *planRun) next() Action {
	switch p := r.p; {
	case r.Cancel != nil:
		return &Finish{Status: messages.StatusCancelled, Err: &messages.RunError{
			Code: messages.CodeCancelled, Message: r.Cancel.Text(),
		}}
	case r.Failure != nil:
		return &Finish{Status: messages.StatusFailed, Err: r.Failure}
	case r.Calling && p.Pause:
		return &Park{Parked: record.Parked{Reason: queue.ParkModel, Cause: p.Cause}, For: NetworkPause}
	case r.Calling:
		return r.call(r.Step, r.Purpose)
	case p.Reply != nil:
		return r.judge(*p.Reply)
	case p.Plan == nil:
		return r.prepare()
	case len(r.Open) > 0:
		return r.gather()
	case p.FellBack && r.Purpose == messages.PurposeSummary:
		return r.finish(r.joined())
	case p.FellBack:
		return decide(&record.Planned{
			Step: r.Step, Decision: record.DecisionContinue, Fallback: true,
			Reason: "the model did not answer in time; the plan is kept",
		})
	case p.Decision == record.DecisionAbort:
		return fail(messages.CodeToolFailed, "the plan was aborted: "+p.Reason)
	case p.Decision == record.DecisionComplete:
		if skip := r.rest("the goal is achieved already"); skip != nil {
			return decide(skip...)
		}
		return r.conclude()
	case r.observes():
		return r.call(r.Step, messages.PurposeObserve)
	case len(r.Unheard) > 0 && r.observe() != messages.ObserveNever && !r.exhausted():
		return r.ask(messages.PurposeObserve)
	}
	return r.advance()
}

// prepare gets the plan.
func (r *planRun) prepare() Action {
	given := r.given()
	if given == nil {
		return r.ask(messages.PurposePlan)
	}
	if err := given.CheckTools(r.toolNames()); err != nil {
		return fail(messages.CodeInvalidInput, "plan."+err.Error())
	}
	return decide(&record.Planned{Decision: record.DecisionReady, Reason: "the plan was given", Plan: given})
}

// given is the plan of the task or the agent; nil: the model makes one.
func (r *planRun) given() *messages.Plan {
	if r.Task.Plan != nil {
		return r.Task.Plan
	}
	return r.Agent.Plan
}

func (r *planRun) toolNames() []string {
	names := make([]string, len(r.Tools))
	for i := range r.Tools {
		names[i] = r.Tools[i].Name
	}
	return names
}

// observe is when the model is asked how to continue.
func (r *planRun) observe() string {
	switch {
	case r.Agent.Observe != "":
		return r.Agent.Observe
	case r.given() != nil:
		return messages.ObserveNever
	default:
		return messages.ObserveAlways
	}
}

// gather ends the steps whose calls have a result and continues with the other calls.
func (r *planRun) gather() Action {
	if d := (&Decide{Records: r.ends()}); d.Records != nil {
		return d
	}
	return &CallTools{}
}

// ends are the ends of the steps whose calls have a result.
func (r *planRun) ends() (out []record.Record) {
	for i := range r.Open {
		c := &r.Open[i]
		if c.Result == nil {
			continue
		}
		end := &record.StepEnded{Step: r.Step, StepID: c.Call.ID, Status: messages.StepCompleted}
		if c.Result.IsError {
			m := messages.Message{Content: c.Result.Content}
			end.Status, end.Reason = messages.StepFailed, strict.Clip(m.Text(), maxReason)
			if code := r.Codes.of(CallKey(r.Step, c.Call.ID)); code == messages.CodeApprovalDenied || code == messages.CodeApprovalExpired {
				end.Status = messages.StepSkipped
			}
		}
		out = append(out, end)
	}
	return out
}

// maxReason bounds a reason in the log, in bytes.
const maxReason = 1 << 10

// observes reports whether the model is asked about the steps that have ended.
func (r *planRun) observes() bool {
	switch r.observe() {
	case messages.ObserveAlways:
		return len(r.p.Unseen) > 0
	case messages.ObserveOnFailure:
		for _, id := range r.p.Unseen {
			if r.p.Steps[id].Status != messages.StepCompleted {
				return true
			}
		}
	}
	return false
}

// advance skips steps that can no longer run, begins those without open dependencies, and concludes when none is left.
func (r *planRun) advance() Action {
	skip, begin, waits := &Decide{}, &Decide{}, false
	size := r.size()
	for i := range r.p.Plan.Steps {
		step := &r.p.Plan.Steps[i]
		at, known := r.p.Steps[step.ID]
		if at.Status == messages.StepFailed && step.IsCritical() && !at.Forgiven {
			f := fail(messages.CodeToolFailed, fmt.Sprintf("the critical step %q failed: %s", step.ID, at.Reason))
			f.Err.Info = map[string]any{"tool": step.Tool, "callId": step.ID}
			return f
		}
		if known {
			continue
		}
		why, ready := r.ready(step)
		switch {
		case why != "":
			skip.Records = append(skip.Records, r.skipped(step.ID, why))
		case ready:
			started, args := r.begin(step)
			if size += args; size > maxConversation { // all that begin together have their arguments in memory at once
				return outgrown()
			}
			begin.Records = append(begin.Records, started)
		default:
			waits = true
		}
	}
	switch {
	case skip.Records != nil:
		return skip
	case begin.Records != nil:
		if r.exhausted() {
			return r.maxSteps()
		}
		if r.StepOpen {
			begin.Records = append([]record.Record{&record.StepEnded{Step: r.Step, Status: messages.StepCompleted}}, begin.Records...)
		}
		return begin
	case waits: // a validated plan has no cycle, and a state out of a cache may hold anything
		return fail(messages.CodeInternal, "no step of the plan can start")
	default:
		return r.conclude()
	}
}

// ready reports whether a step may begin; why not forever, if it may not.
func (r *planRun) ready(step *messages.PlanStep) (why string, ready bool) {
	for _, id := range step.DependsOn {
		switch at := r.p.Steps[id]; at.Status {
		case messages.StepCompleted:
		case messages.StepFailed, messages.StepSkipped:
			return fmt.Sprintf("it depends on %q, which %s", id, map[messages.StepStatus]string{
				messages.StepFailed: "failed", messages.StepSkipped: "was skipped",
			}[at.Status]), false
		default:
			return "", false
		}
		ready = true
	}
	return "", ready || len(step.DependsOn) == 0
}

// begin is the start of a step and the size of its arguments, or its end when its arguments cannot be made.
func (r *planRun) begin(step *messages.PlanStep) (started record.Record, size int) {
	args, err := r.p.arguments(step)
	if err != nil {
		return &record.StepEnded{
			Step: r.Step + 1, StepID: step.ID, Status: messages.StepFailed, Reason: strict.Clip(err.Error(), maxReason),
		}, 0
	}
	return &record.StepStarted{Step: r.Step + 1, StepID: step.ID}, len(args)
}

func (r *planRun) skipped(id, why string) record.Record {
	return &record.StepEnded{Step: r.Step, StepID: id, Status: messages.StepSkipped, Reason: strict.Clip(why, maxReason)}
}

// rest ends all steps that have not ended and have no result.
func (r *planRun) rest(why string) (out []record.Record) {
	for i := range r.p.Plan.Steps {
		id := r.p.Plan.Steps[i].ID
		if c := r.open(id); r.p.Steps[id].Status == "" && (c == nil || c.Result == nil) {
			out = append(out, r.skipped(id, why))
		}
	}
	return out
}

// leave has every step of a plan reported before the run ends, with the results that are in.
func (s *State) leave(f *Finish) {
	if s.Plan == nil || s.Plan.Plan == nil {
		return
	}
	r := planRun{State: s, p: s.Plan}
	why := "the run has ended"
	if f.Err != nil {
		why += ": " + f.Err.Message
	}
	f.Before = append(r.ends(), r.rest(why)...)
}

// exhausted reports whether another turn, and the summary after it, would be more than the steps that the run may take.
func (r *planRun) exhausted() bool {
	turns := r.Step + 1
	if r.asks() {
		turns++
	}
	return turns > r.Agent.Steps(r.Task.Limits)
}

func (r *planRun) maxSteps() Action {
	return fail(messages.CodeMaxSteps, fmt.Sprintf("the plan is not done within the limit of steps, %d", r.Agent.Steps(r.Task.Limits)))
}

// asks reports whether a model takes part in the run.
func (r *planRun) asks() bool { return r.given() == nil || r.observe() != messages.ObserveNever }

// ask calls the model in a turn of its own.
func (r *planRun) ask(purpose messages.Purpose) Action {
	if purpose != messages.PurposeSummary && r.exhausted() {
		return r.maxSteps()
	}
	return r.call(r.Step+1, purpose)
}

// conclude writes the summary.
func (r *planRun) conclude() Action {
	if r.asks() {
		return r.ask(messages.PurposeSummary)
	}
	return r.finish(r.joined())
}

func (r *planRun) finish(result, summary string) Action {
	return &Finish{Status: messages.StatusCompleted, Result: result, Summary: summary}
}

// judge says what follows from a reply.
func (r *planRun) judge(text string) Action {
	switch r.Stop {
	case messages.StopContentFilter:
		return fail(messages.CodeModelContentFilter, "the provider's content filter stopped the reply")
	case messages.StopError:
		return fail(messages.CodeModelInvalidOutput, "the provider ended the reply with an error")
	case messages.StopLength, messages.StopEnd, messages.StopRefusal, messages.StopToolCalls:
	}
	if r.Purpose == messages.PurposeSummary {
		if text == "" {
			return r.finish(r.joined())
		}
		return r.finish(text, text)
	}
	d, err := r.read(r.Purpose, text)
	switch {
	case err == nil:
		return d
	case r.Agent.OnInvalidOutput == messages.OnErrorFail || r.p.Invalid+1 >= maxInvalid:
		return fail(messages.CodeModelInvalidOutput, fmt.Sprintf("Invalid %s: %s", r.Purpose, r.wrong(err)))
	default:
		return r.ask(r.Purpose)
	}
}

// wrong says what is wrong with a reply, in words for the model.
func (r *planRun) wrong(err error) string {
	if r.Stop == messages.StopLength {
		return fmt.Sprintf("it was cut at the limit of %d tokens; be shorter", r.Agent.MaxTokens)
	}
	return err.Error()
}

// read reads a reply strictly.
func (r *planRun) read(purpose messages.Purpose, text string) (*Decide, error) {
	if purpose == messages.PurposeObserve {
		return r.readDecision(text)
	}
	plan, err := readPlan(text, r.toolNames())
	if err != nil {
		return nil, err
	}
	return decide(&record.Planned{Step: r.Step, Decision: record.DecisionReady, Plan: plan}), nil
}

func decide(records ...record.Record) *Decide { return &Decide{Records: records} }
