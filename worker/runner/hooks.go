package runner

import (
	"context"
	"sync"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/limits"
)

// hookWork is what an execution knows of the hooks of its run, and calls them. A hook that was asked by an owner before is
// asked again, under the same id, unless the log shows the outcome. Only the execution's goroutine uses it.
type hookWork struct {
	*job

	journal *journal
	own     *ownership
	calls   *callBook

	known  bool                // written by hooked, once the agent is known; hooks too
	hooks  []Hook              // the worker's, then the agent's
	asked  map[string]bool     // by id of the HookCall; written by askHooks
	owed   []messages.HookCall // results that are recorded and of which no hook was told yet; written by owe and askHooks
	denied *messages.RunError  // a pre_task hook refused the run; written by judgeHooks
	pumps  sync.WaitGroup      // of hooks that are told tokens
}

// hooked reports whether the run has any hooks.
func (x *hookWork) hooked(s *agent.State) bool {
	if !x.known {
		x.hooks, _ = x.r.hooksOf(s.Agent)
		x.known, x.asked = true, map[string]bool{}
	}
	return len(x.hooks) > 0
}

// at are the hooks of a point.
func (x *hookWork) at(s *agent.State, p messages.HookPoint) (out []Hook) {
	if !x.hooked(s) {
		return nil
	}
	for _, h := range x.hooks {
		if h.On == p {
			out = append(out, h)
		}
	}
	return out
}

// heard reports whether no hook is left to call about it.
func (x *hookWork) heard(s *agent.State, c messages.HookCall) bool {
	return len(x.at(s, c.On)) == 0 || x.asked[c.ID]
}

// beforeHooks is the gate of hooks.
func (x *hookWork) beforeHooks(s *agent.State, next agent.Action) (v limits.Verdict) {
	if calls := x.due(s, next); len(calls) > 0 {
		v.Instead = &agent.AskHooks{Calls: calls}
	}
	return v
}

// due are the calls of hooks that come before an action.
func (x *hookWork) due(s *agent.State, next agent.Action) []messages.HookCall {
	end, ends := next.(*agent.Finish)
	if !x.hooked(s) {
		return nil
	}
	if len(x.calls.flying) > 0 && !ends { // what flies is waited for first
		return nil
	}
	var out []messages.HookCall
	add := func(c messages.HookCall) {
		if !x.heard(s, c) {
			out = append(out, c)
		}
	}
	for _, c := range x.owed {
		add(c)
	}
	if s.Step == 0 && s.ToolCalls == 0 && !ends {
		c := x.hookCall(s, messages.HookPreTask, "")
		c.Input = s.Task.Input.Text()
		add(c)
	}
	switch next.(type) {
	case *agent.CallModel:
		if s.Calling {
			add(x.hookCall(s, messages.HookStepStart, ""))
		}
	case *agent.CallTools:
		for _, c := range x.unasked(s) {
			add(c)
		}
	case *agent.Finish:
		for _, c := range x.ending(s, end) {
			add(c)
		}
	default:
	}
	return out
}

func (x *hookWork) hookCall(s *agent.State, p messages.HookPoint, about string) messages.HookCall {
	what := string(p)
	if about != "" {
		what += "." + about
	}
	return messages.HookCall{
		ID: x.key(s.Step, what), On: p, Time: x.now(), Tenant: x.run.Tenant, Run: x.run.Run, Agent: s.Agent.Name,
		Step: s.Step, Attempt: s.Claims,
	}
}

// unasked are the tool calls that may begin now, as pre_tool hooks are asked about them.
func (x *hookWork) unasked(s *agent.State) (out []messages.HookCall) {
	if len(x.at(s, messages.HookPreTool)) == 0 {
		return nil
	}
	for i := range s.Open {
		if x.calls.foregone(s, &s.Open[i]) != nil {
			return nil // the state moves on first
		}
	}
	for _, c := range x.calls.wave(s) {
		if c.Started == "" && x.calls.parks[c.Call.ID] == nil {
			out = append(out, x.preTool(s, c.Call))
		}
	}
	return out
}

func (x *hookWork) preTool(s *agent.State, call messages.ToolCall) messages.HookCall {
	c := x.hookCall(s, messages.HookPreTool, call.ID)
	c.Tool = &call
	return c
}

func (x *hookWork) heardTool(s *agent.State, call messages.ToolCall) bool {
	return x.heard(s, x.preTool(s, call))
}

// ending returns the hook calls for a run that is about to end. If it then ends otherwise, the hooks are called again.
func (x *hookWork) ending(s *agent.State, f *agent.Finish) (out []messages.HookCall) {
	if len(x.at(s, messages.HookOnError)) == 0 && len(x.at(s, messages.HookPostTask)) == 0 {
		return nil
	}
	if s.StartedAt.IsZero() {
		s.StartedAt = x.now()
	}
	res := s.Conclude(x.run, f, x.now()).Short(x.run)
	if f.Status == messages.StatusFailed && f.Err != nil {
		c := x.hookCall(s, messages.HookOnError, string(f.Err.Code))
		c.Error = res.Error
		out = append(out, c)
	}
	c := x.hookCall(s, messages.HookPostTask, string(f.Status))
	c.Result = &res
	return append(out, c)
}

// owe remembers a result that is about to be recorded for the hooks that are notified of it.
func (x *hookWork) owe(call messages.ToolCall, r *record.ToolReturned) {
	if len(x.at(x.journal.state, messages.HookPostTool)) == 0 {
		return
	}
	c := x.hookCall(x.journal.state, messages.HookPostTool, call.ID)
	c.Tool, c.Output, c.IsError, c.Code = &call, messages.ShownOutput(&r.Result), r.Result.IsError, r.Code
	x.owed = append(x.owed, c)
}

// askHooks calls the hooks, all at once, and commits the outcome: failures, and refusals of tool calls. Nothing is
// recorded of a hook that agreed: what it agreed to is.
func (x *hookWork) askHooks(ctx context.Context, a *agent.AskHooks) (agent.Action, error) {
	if err := x.own.prove(ctx); err != nil {
		return nil, err
	}
	answers := make([][]hookAnswer, len(a.Calls))
	var all sync.WaitGroup
	for i, c := range a.Calls {
		hooks := x.at(x.journal.state, c.On)
		answers[i] = make([]hookAnswer, len(hooks))
		for j, h := range hooks {
			all.Go(func() {
				answers[i][j].answer, answers[i][j].err = h.call(ctx, c, x.cfg.Log)
				answers[i][j].hook = h
			})
		}
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var reports []record.Record
	for i, c := range a.Calls {
		x.asked[c.ID] = true
		reports = append(reports, x.judgeHooks(c, answers[i])...)
	}
	x.owed = nil // they were among the calls
	return x.journal.commit(ctx, reports...)
}

type hookAnswer struct {
	hook   Hook
	answer messages.HookAnswer
	err    error
}

// judgeHooks is what the hooks of one call made of it. The first refusal counts.
func (x *hookWork) judgeHooks(c messages.HookCall, answers []hookAnswer) (reports []record.Record) {
	for _, a := range answers {
		if a.err != nil {
			reports = append(reports, x.hookFailed(c, a.hook, a.err))
		}
	}
	for _, a := range answers {
		if a.err != nil || !a.answer.Denies() {
			continue
		}
		refusal := x.cfg.Redact(a.answer.Refusal())
		switch c.On {
		case messages.HookPreTask:
			x.denied = &messages.RunError{Code: messages.CodePolicy, Message: refusal}
		case messages.HookPreTool:
			reports = append(reports, &record.ToolReturned{
				Step: c.Step, Name: c.Tool.Name, Code: messages.CodePolicy, StepID: x.journal.state.StepID(c.Tool.ID),
				Result: messages.ToolResult{CallID: c.Tool.ID, Content: messages.TextContent(refusal), IsError: true},
			})
		default:
		}
		break
	}
	return reports
}

func (x *hookWork) hookFailed(c messages.HookCall, h Hook, err error) *record.HookFailed {
	r := &record.HookFailed{
		On: c.On, Hook: x.cfg.Redact(h.Name), Step: c.Step, Reason: strict.Clip(x.cfg.Redact(err.Error()), maxHookFailure),
		Fatal: h.OnFailure == messages.HookFail,
	}
	if c.Tool != nil {
		r.Call = c.Tool.ID
	}
	return r
}

// maxHookFailure bounds what a record says of why a hook failed, in bytes.
const maxHookFailure = 1 << 10

// decideFirst reports whether a hook is to decide about a call before it begins.
func (x *hookWork) decideFirst(s *agent.State, c messages.ToolCall) bool {
	return x.hooked(s) && !x.heardTool(s, c)
}
