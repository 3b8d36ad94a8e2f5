package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/policy"
)

// delegate prepares the children that a call asks for. They are named in the log with the park that waits for them, and made when
// that is settled. What cannot be done the model is told.
func (x *toolWork) delegate(ctx context.Context, a *answer) (agent.Action, error) {
	d, found, err := x.draft(ctx, a.call, a.result.Delegation)
	refused, told := errors.AsType[*messages.RunError](err)
	switch {
	case told:
		a.result = tools.Failure(refused.Message)
		return x.answered(ctx, a)
	case err != nil:
		return nil, fmt.Errorf("delegate: %w", err)
	}
	x.calls.drafts[a.call.ID] = d
	return x.journal.commitPaid(x.rules.applied(x.journal.state, a.call, found)...)
}

func untold(format string, args ...any) error {
	return &messages.RunError{Code: messages.CodeToolFailed, Message: fmt.Sprintf(format, args...)}
}

// draft is the record of a delegation. A *messages.RunError is for the model; any other error is the platform's.
func (x *toolWork) draft(ctx context.Context, c messages.ToolCall, asked *tools.Delegation) (*record.Delegated, []policy.Finding, error) {
	if x.cfg.Controller.Tasks == nil {
		return nil, nil, untold("This program runs one agent alone and cannot hand out sub-tasks: do it yourself.")
	}
	s := x.journal.state
	if n := s.Ending(); n >= record.MaxEarlier {
		return nil, nil, untold("Sub-tasks of %d earlier calls are still ending: hand out more later.", n)
	}
	each, limits, failure := s.Share(len(asked.Tasks))
	if failure != "" {
		return nil, nil, untold("%s", failure)
	}
	d := &record.Delegated{
		Number: s.Delegations + 1, Step: s.Step, Call: c.ID, Need: asked.Need, Any: asked.Any, OnFailure: asked.OnFailure,
		At: x.now(), Used: s.Had(), Rules: rulesAbove(s),
	}
	var found []policy.Finding
	for i, t := range asked.Tasks {
		task := messages.Task{
			ID: record.ChildRun(x.run, d.Number, i), Tenant: x.run.Tenant, Agent: t.Agent, Input: messages.TextInput(t.Input),
			Priority: s.Task.Priority, Labels: maps.Clone(s.Task.Labels), Limits: limits, Requires: s.Task.Requires, Seed: s.Task.Seed, By: s.Task.By,
			Traceparent: messages.DelegationTrace(x.run, s.Head.Trace, d.Number).String(),
		}
		if end, _, ok := s.Ends(); ok {
			task.Deadline = new(end.UTC())
		}
		of := slices.IndexFunc(d.Agents, func(of record.Delegatee) bool { return of.Definition.Name == t.Agent })
		if of < 0 {
			agreed, err := x.delegatee(ctx, &task, each.Runs)
			if err != nil {
				return nil, nil, err
			}
			of, d.Agents = len(d.Agents), append(d.Agents, *agreed)
		}
		def := &d.Agents[of].Definition
		rules, err := x.rules.made(def, d.Rules)
		if err != nil {
			return nil, nil, untold("tasks[%d]: %v", i, err)
		}
		d.Agents[of].Shown = rules.Shown(def)
		fs, blocked := x.clean(rules, &task)
		if blocked != nil {
			return nil, nil, untold("tasks[%d]: %s", i, blocked.Message)
		}
		found = append(found, fs...)
		if err := errors.Join(task.Validate(), task.CheckInput(x.cfg.MaxInput)); err != nil {
			return nil, nil, untold("tasks[%d]: %v", i, err)
		}
		d.Children = append(d.Children, record.Child{Agent: of, Task: task, Share: each})
	}
	return d, found, nil
}

// rulesAbove are the rules of the agents above the children of a run.
func rulesAbove(s *agent.State) []record.RulesFor {
	var above []record.RulesFor
	if s.Parent != nil {
		above = slices.Clone(s.Parent.Rules)
	}
	if s.Agent.Policy != nil {
		above = append(above, record.RulesFor{Agent: s.Agent.Name, Policy: s.Agent.Policy})
	}
	return above
}

// delegatee is the agent of a task as it is now, narrowed to what this run may hand down.
func (x *toolWork) delegatee(ctx context.Context, task *messages.Task, runs int) (*record.Delegatee, error) {
	s := x.journal.state
	def, err := x.cfg.Agent(ctx, task.Agent)
	switch {
	case errors.Is(err, messages.ErrUnknownAgent):
		return nil, untold("There is no agent %s.", task.Agent)
	case err != nil:
		return nil, fmt.Errorf("resolve agent %s: %w", task.Agent, err)
	}
	if err := x.claims.prompt(ctx, &def, task); err != nil {
		return nil, err
	}
	of := &record.Delegatee{}
	of.Definition, of.Withheld = s.Agent.HandDown(def)
	child := &of.Definition
	if child.Delegate = def.Delegate.Within(s.Agent.Delegate.Levels()-1, runs); child.Delegate == nil {
		child.Tools = slices.DeleteFunc(child.Tools, func(name string) bool { return name == messages.ToolDelegate })
	}
	if b := child.Budget; b != nil && b.OnBudget == messages.OnBudgetAsk { // what it may spend is its parent's
		own := *b
		own.OnBudget = messages.OnBudgetStop
		child.Budget = &own
	}
	if err := child.Validate(); err != nil {
		return nil, untold("Agent %s cannot work with what this run may hand down: %v.", task.Agent, err)
	}
	if _, err := x.r.hooksOf(child); err != nil {
		return nil, untold("Agent %s cannot work: %v.", task.Agent, err)
	}
	if err := agent.CheckOutputSchema(task, child); err != nil {
		return nil, untold("Agent %s cannot work: %v.", task.Agent, err)
	}
	if specs, err := x.cfg.Tools.Specs(child.Tools); err == nil {
		of.Tools = specs
	} // else the worker that has them says what they are
	return of, nil
}

// clean takes configured secrets, and what rules say, out of the input of a child.
func (x *toolWork) clean(rules *policy.Rules, task *messages.Task) (found []policy.Finding, blocked *messages.RunError) {
	task.Input = messages.Input(x.redact(task.Input))
	if rules == nil {
		return nil, nil
	}
	input, found, stop := rules.Blocks(messages.PolicyInput, "", task.Input)
	if stop {
		return nil, &messages.RunError{Code: messages.CodePolicy, Message: found[len(found)-1].Reason}
	}
	task.Input = input
	return found, nil
}

// collect makes the result of a call that has waited enough for its children. Those still running are ended first: that enough have
// ended stays true, no matter which worker owns the run.
func (x *toolWork) collect(ctx context.Context, a *agent.CollectChildren) (agent.Action, error) {
	if err := x.cfg.Controller.EndChildren(ctx, x.run, x.journal.state.Head, "it is no longer waited for"); err != nil {
		return nil, err
	}
	if err := x.journal.catchUp(ctx, false); err != nil { // with the ends that this has brought
		return nil, err
	}
	s := x.journal.state
	d := s.Delegated(a.Call)
	at := slices.IndexFunc(s.Open, func(c agent.OpenCall) bool { return c.Call.ID == a.Call })
	if d == nil || at < 0 {
		return x.journal.commit(ctx)
	}
	ws, done, err := x.files.open(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	c := s.Open[at].Call
	text, isError := d.Answer()
	res := tools.Text(text)
	if res.IsError = isError; isError {
		res.Code = messages.CodeToolFailed
	}
	ended, completed := d.Counts()
	res.Meta = map[string]any{"children": len(d.Children), "ended": ended, "completed": completed}
	out := &answer{call: c}
	out.result, out.found = judged(x.rules.of(s.Agent), c.Name, res)
	out.result.Content = x.excerpt(x.toolCall(c, ws), out.result.Content)
	return x.answered(ctx, out)
}

// awaitChildren is what an open call that has delegated does next: it waits, or has waited enough.
func awaitChildren(d *agent.Delegation) agent.Action {
	if d.Await.Enough() {
		return &agent.CollectChildren{Call: d.Call}
	}
	return &agent.Park{Parked: record.Parked{Reason: queue.ParkChildren, Call: d.Call}}
}
