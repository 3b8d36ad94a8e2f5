package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/limits"
)

// beforeCalls is the gate of calls that wait for a person, or for what they asked to wait for. What is decided about calls
// without any effect is recorded first.
func (x *execution) beforeCalls(s *agent.State, next agent.Action) (v limits.Verdict) {
	if _, calls := next.(*agent.CallTools); !calls {
		return v
	}
	rs, park := x.admit(s)
	if v.Records = rs; len(rs) == 0 && park != nil {
		s.UntilEnd(&park.Parked)
		v.Instead = park
	}
	return v
}

// unapproved reports whether a call waits for a person to agree to it.
func unapproved(c *agent.OpenCall) bool { return c.Approve && c.Answer == nil }

// parkForApproval asks for a call that must not begin before a person has agreed.
func (x *execution) parkForApproval(s *agent.State, c messages.ToolCall) *agent.Park {
	until := x.now().Add(s.Agent.ApprovalExpires())
	asked := messages.NewApproval(s.Agent.Name, s.Step, s.StepID(c.ID), c)
	asked.Arguments = x.cfg.Redact(asked.Arguments)
	return &agent.Park{Parked: record.Parked{Reason: messages.ParkApproval, Call: c.ID, Until: &until, Approval: asked}}
}

// admit decides about the open calls what needs no effect: what is refused, what was answered while the run was
// parked, what cannot be known any more, which calls begin now. A park is returned when nothing is left to do but to
// wait for a call that asked for it.
func (x *execution) admit(s *agent.State) (rs []record.Record, park *agent.Park) {
	for i := range s.Open {
		if r := x.foregone(s, &s.Open[i]); r != nil {
			rs = append(rs, r)
		}
	}
	if rs != nil {
		return rs, nil // the state moves on first
	}
	wave := x.wave(s)
	for i := range wave {
		c := &wave[i]
		if unapproved(c) {
			// The others of the wave are made first.
			if len(x.flying) == 0 && !anyApproved(wave) {
				return rs, x.parkForApproval(s, c.Call)
			}
			continue
		}
		if wish := x.parks[c.Call.ID]; wish != nil {
			if len(x.flying) == 0 {
				park = x.park(c.Call.ID, wish)
			}
			continue
		}
		if c.Started == "" && x.hooked(s) && !x.heardTool(s, c.Call) {
			continue // a hook decides first, when nothing flies any more
		}
		if c.Started == "" {
			rs = append(rs, &record.ToolStarted{Step: s.Step, Call: c.Call, StepID: s.StepID(c.Call.ID)})
		}
	}
	if rs != nil {
		return rs, nil
	}
	return nil, park
}

// anyApproved reports whether a call of a wave may be made.
func anyApproved(wave []agent.OpenCall) bool {
	return slices.ContainsFunc(wave, func(c agent.OpenCall) bool { return !unapproved(&c) })
}

func (x *execution) park(call string, wish *tools.Park) *agent.Park {
	p := record.Parked{Reason: wish.Reason, Call: call, Question: x.cfg.Redact(wish.Question)}
	if wish.For > 0 {
		until := x.now().Add(wish.For)
		p.Until = &until
	}
	return &agent.Park{Parked: p}
}

// foregone is the result of a call that is not to be made; nil: it is to be made, or is on its way, or done.
func (x *execution) foregone(s *agent.State, c *agent.OpenCall) record.Record {
	switch {
	case c.Result != nil || x.flying[c.Call.ID]:
		return nil
	case c.Answer != nil && c.Answer.IsError:
		return returned(s, c, *c.Answer, cmp.Or(c.Refused, messages.CodeToolFailed))
	case c.Answer != nil:
		return returned(s, c, *c.Answer, "")
	case c.Started != "" && c.Started != x.claimID && x.cfg.Tools.Effect(c.Call.Name) == messages.EffectOnce:
		return returned(s, c, messages.ToolResult{Content: messages.TextContent(
			"The outcome of this call is unknown: the worker was lost while it ran. It may or may not have taken effect; " +
				"check before you repeat it."), IsError: true}, messages.CodeToolUnknownOutcome)
	}
	if refusal := x.check(c.Call, s.Tools); refusal != nil {
		return returned(s, c, messages.ToolResult{Content: refusal.Content, IsError: true}, refusal.Code)
	}
	return nil
}

// returned is the result of a call that was not made.
func returned(s *agent.State, c *agent.OpenCall, res messages.ToolResult, code messages.Code) record.Record {
	res.CallID = c.Call.ID
	return &record.ToolReturned{Step: s.Step, Name: c.Call.Name, Result: res, Code: code, StepID: s.StepID(c.Call.ID)}
}

// checkAll checks the calls of a reply while its run does not hold up others yet.
func (x *execution) checkAll(reply *messages.Message) {
	for i := range reply.Content {
		if c := reply.Content[i].ToolCall; c != nil {
			x.check(*c, x.state.Tools)
		}
	}
}

// check checks a call, once, and keeps its arguments.
func (x *execution) check(c messages.ToolCall, allowed []messages.ToolSpec) (refusal *tools.Result) {
	if x.args[c.ID] != nil {
		return nil
	}
	checked := make(chan json.RawMessage, 1)
	go func() { // a validator needs more stack than the rest of a run, whose goroutine would keep it
		args, why := x.cfg.Tools.Check(c, allowed)
		refusal = why
		checked <- args
	}()
	if args := <-checked; refusal == nil {
		x.args[c.ID] = args
	}
	return refusal
}

// wave is the calls to make next: neighbouring ones that cannot disturb each other, as many as the agent allows, in the
// model's order. What can, their effects and resources tell.
func (x *execution) wave(s *agent.State) (wave []agent.OpenCall) {
	together := s.Agent.Together()
	if s.Task.Seed != nil { // the order in which results come in is then always the same
		together = 1
	}
	first := slices.IndexFunc(s.Open, func(c agent.OpenCall) bool { return c.Result == nil })
	if first < 0 {
		return nil
	}
	var claims []tools.Claim
	for _, c := range s.Open[first:min(first+together, len(s.Open))] {
		if c.Result != nil {
			continue
		}
		claim := x.cfg.Tools.Claim(c.Call.Name, x.args[c.Call.ID])
		if slices.ContainsFunc(claims, func(other tools.Claim) bool { return !claim.Beside(other) }) {
			break
		}
		wave, claims = append(wave, c), append(claims, claim)
	}
	return wave
}

// answer is what came of a call.
type answer struct {
	call   messages.ToolCall
	result tools.Result
	err    error
	millis int64
}

// callTools makes the calls of the wave and commits each result as it comes. Only this goroutine touches the state;
// the calls answer it on a channel. It returns when the plan is no longer to make calls of this wave.
func (x *execution) callTools(ctx context.Context) (action agent.Action, err error) {
	ws := x.shared
	if ws == nil {
		if ws, err = x.cfg.Workspace(x.run); err != nil {
			return nil, fmt.Errorf("open workspace: %w", err)
		}
		defer func() { _ = ws.Close() }()
	}
	calls, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	defer x.listen(abort)()
	defer x.bound(abort)()
	wave := slices.DeleteFunc(x.wave(x.state), func(c agent.OpenCall) bool { return unapproved(&c) })
	x.countRepeated(wave)
	if len(wave) == 1 {
		return x.answered(ctx, x.perform(calls, wave[0].Call, x.toolCall(wave[0].Call, ws)))
	}
	return x.callWave(ctx, calls, abort, wave, ws)
}

// callWave makes several calls at the same time.
func (x *execution) callWave(
	ctx, calls context.Context, abort context.CancelCauseFunc, wave []agent.OpenCall, ws *sandbox.Workspace,
) (action agent.Action, err error) {
	answers := make(chan *answer, len(wave)) // a call never waits for an append
	for i := range wave {
		c := wave[i].Call
		x.flying[c.ID] = true
		call := x.toolCall(c, ws)
		go func() { answers <- x.perform(calls, c, call) }()
	}
	pending := len(wave)
	defer func() { // whatever ends the wave, no call outlives it
		abort(err)
		for ; pending > 0; pending-- {
			<-answers
		}
		clear(x.flying)
	}()
	for pending > 0 {
		a := <-answers
		pending--
		delete(x.flying, a.call.ID)
		if action, err = x.answered(ctx, a); err != nil {
			return nil, err
		}
		if _, more := action.(*agent.CallTools); !more {
			return action, nil
		}
	}
	return action, nil
}

// countRepeated counts the calls that an owner before has begun who was lost.
func (x *execution) countRepeated(wave []agent.OpenCall) {
	for _, c := range wave {
		if x.succeeds && c.Started != "" && c.Started != x.claimID {
			x.r.count(func(s *Stats) { s.RepeatedToolCalls++ })
		}
	}
}

func (x *execution) toolCall(c messages.ToolCall, ws *sandbox.Workspace) tools.Call {
	return tools.Call{
		Run: x.run, ID: c.ID, Key: x.key(x.state.Step, c.ID), Arguments: x.args[c.ID], Workspace: ws,
		Timeout: time.Duration(x.state.Agent.ToolTimeout),
	}
}

// perform runs in any goroutine.
func (x *execution) perform(ctx context.Context, c messages.ToolCall, call tools.Call) *answer {
	call.Begin = func() error { return x.prove(ctx) }
	if err := call.Begin(); err != nil {
		return &answer{call: c, err: err}
	}
	began := x.now()
	res, err := x.cfg.Tools.Call(ctx, c.Name, call)
	if err == nil && res.Park == nil {
		res.Content = x.excerpt(call, res.Content)
	}
	return &answer{c, res, err, x.now().Sub(began).Milliseconds()}
}

// answered commits what came of a call.
func (x *execution) answered(ctx context.Context, a *answer) (agent.Action, error) {
	switch {
	case a.err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(a.err, errHeed):
		return x.replan(ctx)
	case a.err != nil:
		return nil, fmt.Errorf("call tool %s: %w", a.call.Name, a.err)
	case a.result.Park != nil:
		x.parks[a.call.ID] = a.result.Park
		return x.commit(ctx)
	}
	content := a.result.Content
	if len(content) == 0 {
		content = messages.TextContent("")
	}
	r := &record.ToolReturned{
		Step: x.state.Step, Name: a.call.Name, Millis: a.millis,
		Result: messages.ToolResult{CallID: a.call.ID, Content: x.redact(content), IsError: a.result.IsError},
		StepID: x.state.StepID(a.call.ID),
	}
	for _, f := range a.result.Files {
		r.Files = append(r.Files, x.cfg.Redact(f))
	}
	r.Meta = x.meta(a.result.Meta)
	if a.result.IsError {
		r.Code = cmp.Or(a.result.Code, messages.CodeToolFailed)
	}
	x.owe(a.call, r)
	return x.commitPaid(r)
}

// meta is what a tool said about its result, without secrets; nil when it cannot be told without them.
func (x *execution) meta(in map[string]any) json.RawMessage {
	if len(in) == 0 {
		return nil
	}
	raw, err := json.Marshal(in)
	if err != nil {
		return nil
	}
	// A secret that is part of a number leaves no JSON.
	text := x.cfg.Redact(string(raw))
	if !json.Valid([]byte(text)) || len(text) > record.MaxMeta {
		return json.RawMessage(`{"_leftOut":` + strconv.Itoa(len(in)) + `}`)
	}
	return json.RawMessage(text)
}
