package runner

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/agent"
)

// maxWave is how many calls run together.
const maxWave = 8

// admit decides about the open calls what needs no effect: what is refused, what was answered while the run was
// parked, what cannot be known any more, which calls begin now. A park is returned when nothing is left to do but to
// wait for a call that asked for it.
func (x *execution) admit(s *agent.State) (rs []messages.Record, park *agent.Park) {
	for i := range s.Open {
		if r := x.foregone(s, &s.Open[i]); r != nil {
			rs = append(rs, r)
		}
	}
	if rs != nil {
		return rs, nil // the state moves on first
	}
	for _, c := range x.wave(s) {
		if wish := x.parks[c.Call.ID]; wish != nil {
			if len(x.flying) == 0 {
				park = x.park(c.Call.ID, wish)
			}
			continue
		}
		if c.Started == "" {
			rs = append(rs, &messages.ToolStarted{Step: s.Step, Call: c.Call})
		}
	}
	if rs != nil {
		return rs, nil
	}
	return nil, park
}

func (x *execution) park(call string, wish *tools.Park) *agent.Park {
	p := messages.Parked{Reason: wish.Reason, Call: call}
	if wish.For > 0 {
		until := x.now().Add(wish.For)
		p.Until = &until
	}
	return &agent.Park{Parked: p}
}

// foregone is the result of a call that is not to be made; nil: it is to be made, or is on its way, or done.
func (x *execution) foregone(s *agent.State, c *agent.OpenCall) messages.Record {
	returned := func(res messages.ToolResult, code messages.Code) messages.Record {
		res.CallID = c.Call.ID
		return &messages.ToolReturned{Step: s.Step, Name: c.Call.Name, Result: res, Code: code}
	}
	switch {
	case c.Result != nil || x.flying[c.Call.ID]:
		return nil
	case c.Answer != nil && c.Answer.IsError:
		return returned(*c.Answer, messages.CodeToolFailed)
	case c.Answer != nil:
		return returned(*c.Answer, "")
	case c.Started == "":
		if _, refusal := x.cfg.Tools.Check(c.Call, s.Tools); refusal != nil {
			return returned(messages.ToolResult{Content: refusal.Content, IsError: true}, refusal.Code)
		}
		return nil
	case c.Started != x.claimID && x.cfg.Tools.Effect(c.Call.Name) == messages.EffectOnce:
		return returned(messages.ToolResult{Content: messages.TextContent(
			"The outcome of this call is unknown: the worker was lost while it ran. It may or may not have taken effect; " +
				"check before you repeat it."), IsError: true}, messages.CodeToolUnknownOutcome)
	default:
		return nil
	}
}

// wave is the calls to make next: neighbouring reads together, anything else alone, in the model's order.
func (x *execution) wave(s *agent.State) []agent.OpenCall {
	for i := range s.Open {
		if s.Open[i].Result != nil {
			continue
		}
		n := i
		for n < len(s.Open) && n-i < maxWave && (s.Open[n].Result != nil || x.cfg.Tools.Effect(s.Open[n].Call.Name) == messages.EffectRead) {
			n++
		}
		var wave []agent.OpenCall
		for _, c := range s.Open[i:max(n, i+1)] {
			if c.Result == nil {
				wave = append(wave, c)
			}
		}
		return wave
	}
	return nil
}

// callTools makes the calls of the wave and commits each result as it comes. Only this goroutine touches the state;
// the calls answer it on a channel. It returns when the plan is no longer to make calls of this wave.
func (x *execution) callTools(ctx context.Context) (action agent.Action, err error) {
	ws, err := x.cfg.Workspace(x.run)
	if err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	defer func() { _ = ws.Close() }()
	type answer struct {
		call   messages.ToolCall
		result tools.Result
		err    error
		millis int64
	}
	calls, abort := context.WithCancelCause(ctx)
	wave := x.wave(x.state)
	answers := make(chan answer, len(wave)) // a call never waits for an append
	pending := 0
	for _, c := range wave {
		args, _ := x.cfg.Tools.Check(c.Call, x.state.Tools)
		tc := tools.Call{
			Run: x.run, ID: c.Call.ID, Key: x.key(x.state.Step, c.Call.ID), Arguments: args, Workspace: ws,
		}
		began := x.now()
		x.flying[c.Call.ID] = true
		pending++
		go func() {
			res, err := x.cfg.Tools.Call(calls, c.Call.Name, tc)
			answers <- answer{c.Call, res, err, x.now().Sub(began).Milliseconds()}
		}()
	}
	defer func() { // whatever ends the wave, no call outlives it
		abort(err)
		for ; pending > 0; pending-- {
			<-answers
		}
		clear(x.flying)
	}()
	action = &agent.CallTools{}
	for pending > 0 {
		select {
		case <-x.nudged:
			if err := x.heed(ctx, action, abort); err != nil {
				return nil, err
			}
		case a := <-answers:
			pending--
			delete(x.flying, a.call.ID)
			if action, err = x.answered(ctx, a.call, a.result, a.err, a.millis); err != nil {
				return nil, err
			}
			if _, more := action.(*agent.CallTools); !more {
				return action, nil
			}
		}
	}
	return action, nil
}

// answered commits what came of a call.
func (x *execution) answered(ctx context.Context, c messages.ToolCall, res tools.Result, err error, millis int64) (agent.Action, error) {
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil && !sameKind(x.planner.Plan(x.state), &agent.CallTools{}): // aborted by a control record
		return x.commit(ctx)
	case err != nil:
		return nil, fmt.Errorf("call tool %s: %w", c.Name, err)
	case res.Park != nil:
		x.parks[c.ID] = res.Park
		return x.commit(ctx)
	}
	if len(res.Content) == 0 {
		res.Content = messages.TextContent("")
	}
	res.Content = x.redact(res.Content)
	r := &messages.ToolReturned{
		Step: x.state.Step, Name: c.Name, Millis: millis,
		Result: messages.ToolResult{CallID: c.ID, Content: res.Content, IsError: res.IsError},
	}
	if res.IsError {
		if r.Code = res.Code; r.Code == "" {
			r.Code = messages.CodeToolFailed
		}
	}
	return x.commit(ctx, r)
}
