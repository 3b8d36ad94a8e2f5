package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/sandbox"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/limits"
	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/policy"
)

// toolWork makes tool calls.
type toolWork struct {
	*job

	journal   *journal
	footprint *footprint
	own       *ownership
	calls     *callBook
	hooks     *hookWork
	claims    *claimer
	rules     *policyWork
	limits    *limits.Set
	files     *claimFiles
}

// answer is what came of a call.
type answer struct {
	call   messages.ToolCall
	result tools.Result
	err    error
	millis int64
	spent  *record.Embedded // of long-term memory
	found  []policy.Finding // what the rules made of the result, and of hosts that the call came to on its way
}

// callTools makes the calls of the wave and commits each result as it comes. Only this goroutine touches the state;
// the calls answer it on a channel. It returns when the plan is no longer to make calls of this wave.
func (x *toolWork) callTools(ctx context.Context) (action agent.Action, err error) {
	ws, done, err := x.files.open(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	calls, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	defer x.own.listen(abort)()
	defer x.journal.bound(abort)()
	wave := slices.DeleteFunc(x.calls.wave(x.journal.state), func(c agent.OpenCall) bool {
		return unapproved(&c) || x.calls.delegates(x.journal.state, c.Call.ID) || !x.calls.permits(x.journal.state, c.Call)
	})
	if len(wave) == 0 { // their permits are over
		return x.journal.commit(ctx)
	}
	n, err := x.footprint.calls(calls, wave, func(c messages.ToolCall) int64 {
		return x.cfg.Tools.Weight(c.Name, &tools.Call{Arguments: x.calls.args[c.ID], Workspace: ws})
	})
	switch {
	case errors.Is(err, errControl):
		return x.journal.replan(ctx)
	case err != nil:
		return nil, err
	}
	wave = wave[:n]
	x.countRepeated(wave)
	for i := range wave {
		x.calls.made[wave[i].Call.ID] = true
	}
	if len(wave) == 1 {
		c := wave[0].Call
		a := x.perform(calls, c, x.toolCall(c, ws), x.judgeOf(c), x.output(c))
		x.footprint.landed(c.ID)
		return x.answered(ctx, a)
	}
	return x.callWave(ctx, calls, abort, wave, ws)
}

// callWave makes several calls at the same time.
func (x *toolWork) callWave(
	ctx, calls context.Context, abort context.CancelCauseFunc, wave []agent.OpenCall, ws *sandbox.Workspace,
) (action agent.Action, err error) {
	answers := make(chan *answer, len(wave)) // a call never waits for an append
	for i := range wave {
		c := wave[i].Call
		x.calls.flying[c.ID] = true
		call, by, out := x.toolCall(c, ws), x.judgeOf(c), x.output(c)
		go func() { answers <- x.perform(calls, c, call, by, out) }()
	}
	pending := len(wave)
	defer func() { // whatever ends the wave, no call outlives it
		abort(err)
		for ; pending > 0; pending-- {
			x.footprint.landed((<-answers).call.ID)
		}
		clear(x.calls.flying)
	}()
	for pending > 0 {
		a := <-answers
		pending--
		delete(x.calls.flying, a.call.ID)
		x.footprint.landed(a.call.ID)
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
func (x *toolWork) countRepeated(wave []agent.OpenCall) {
	for _, c := range wave {
		if x.claims.succeeds && c.Started != "" && c.Started != x.claimID {
			x.r.count(func(s *Stats) { s.RepeatedToolCalls++ })
		}
	}
}

// toolCall is a call that is about to be made, and uses its permit.
func (x *toolWork) toolCall(c messages.ToolCall, ws *sandbox.Workspace) tools.Call {
	s := x.journal.state
	rules := x.rules.of(s.Agent)
	call := tools.Call{
		Run: x.run, ID: c.ID, Key: x.key(s.Step, c.ID), Arguments: x.calls.args[c.ID], Workspace: ws,
		Timeout: time.Duration(s.Agent.ToolTimeout), Agent: s.Agent.Name, Session: s.Task.Session, Grants: s.Agent.GrantOf(), Delegate: s.Agent.Delegate, Redact: x.cfg.Redact,
		Scratchpad: s.Scratchpad.Clone(), Remember: rules.Memory, Retain: rules.Retention, Memories: s.Agent.Memory.Reaches,
	}
	if n, ok := s.Agent.ToolRetries[c.Name]; ok {
		call.Retries = &n
	}
	if rates := x.rules.rates(s, c.Name); len(rates) > 0 {
		p := x.usePermit(c, rates)
		call.Begin, call.Again = p.inTime, p.again
	}
	return call
}

// judge is what a call on its way is judged by.
type judge struct {
	rules *policy.Rules
	asked policy.Asked
}

func (x *toolWork) judgeOf(c messages.ToolCall) judge {
	s := x.journal.state
	return judge{x.rules.of(s.Agent), x.rules.asked(s, c.Name, c.Arguments)}
}

// perform runs in any goroutine. It closes out, which may be nil.
func (x *toolWork) perform(ctx context.Context, c messages.ToolCall, call tools.Call, by judge, out LiveOutput) *answer {
	ended := false
	if out != nil {
		call.Output = out.Add
		defer func() { out.Close(ended) }()
	}
	inTime := call.Begin
	call.Begin = func() error {
		if err := x.own.prove(ctx); err != nil || inTime == nil {
			return err
		}
		return inTime()
	}
	if err := call.Begin(); err != nil {
		return &answer{call: c, err: err}
	}
	var refused atomic.Pointer[policy.Finding]
	allow := func(f *policy.Finding) error {
		if f == nil {
			return nil
		}
		refused.Store(f)
		return errors.New(f.Reason)
	}
	call.Reach = func(endpoint string) error { return allow(by.rules.Host(messages.PolicyOutput, endpoint)) }
	call.Redirect = func(endpoint string) error { return allow(by.rules.Redirect(by.asked, endpoint)) }
	began := x.now()
	var meter longterm.Meter
	res, err := x.cfg.Tools.Call(meter.Metered(ctx), c.Name, call)
	ended = err == nil
	a := &answer{call: c, err: err, millis: x.now().Sub(began).Milliseconds(), spent: x.embedded(&meter)}
	if err == nil && res.Park == nil && res.Delegation == nil {
		res, a.found = judged(by.rules, c.Name, res) // before a part of it is kept in a file
		res.Content = x.excerpt(call, res.Content)
	}
	if f := refused.Load(); f != nil {
		a.found = append(a.found, *f)
	}
	a.result = res
	return a
}

// judged is a result as the rules let it be, and what they found. One that they block is an error that says why.
func judged(rules *policy.Rules, tool string, res tools.Result) (_ tools.Result, found []policy.Finding) {
	if rules == nil {
		return res, nil
	}
	withheld := func(f policy.Finding) (tools.Result, []policy.Finding) {
		text := "The result was withheld: " + f.Reason + "."
		return tools.Result{Content: messages.TextContent(text), IsError: true, Code: messages.CodePolicy}, append(found, f)
	}
	content, found, blocked := rules.Blocks(messages.PolicyOutput, tool, res.Content)
	if blocked {
		return withheld(found[len(found)-1])
	}
	res.Content = content
	if len(res.Meta) == 0 {
		return res, found
	}
	raw, err := json.Marshal(res.Meta)
	if err != nil {
		return res, found // it is left out for that
	}
	clean, fs, stop := rules.JSON(messages.PolicyOutput, tool, string(raw))
	var meta map[string]any
	switch {
	case stop != nil:
		return withheld(*stop)
	case len(fs) > 0 && json.Unmarshal([]byte(clean), &meta) == nil:
		res.Meta, found = meta, append(found, fs...)
	}
	return res, found
}

// answered commits what came of a call.
func (x *toolWork) answered(ctx context.Context, a *answer) (agent.Action, error) {
	switch {
	case a.err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(a.err, errControl):
		return x.journal.replan(ctx)
	case errors.Is(a.err, errLate):
		delete(x.calls.made, a.call.ID)
		return x.journal.commit(ctx)
	case a.err != nil:
		return nil, fmt.Errorf("call tool %s: %w", a.call.Name, a.err)
	case a.result.Delegation != nil:
		return x.delegate(ctx, a)
	case a.result.Park != nil:
		x.calls.parks[a.call.ID] = a.result.Park
		return x.journal.commit(ctx)
	}
	saved, err := x.files.save(&a.result, len(x.calls.flying) == 0)
	if err != nil {
		return nil, fmt.Errorf("call tool %s: %w", a.call.Name, err)
	}
	content := a.result.Content
	if len(content) == 0 {
		content = messages.TextContent("")
	}
	r := &record.ToolReturned{
		Step: x.journal.state.Step, Name: a.call.Name, Millis: a.millis,
		Result: messages.ToolResult{CallID: a.call.ID, Content: x.redact(content), IsError: a.result.IsError},
		StepID: x.journal.state.StepID(a.call.ID), Embedded: a.spent,
	}
	for _, f := range a.result.Files {
		r.Files = append(r.Files, x.cfg.Redact(f))
	}
	r.Meta = x.meta(a.result.Meta)
	if a.result.IsError {
		r.Code = cmp.Or(a.result.Code, messages.CodeToolFailed)
	}
	x.hooks.owe(a.call, r)
	reports := append([]record.Record{r}, x.rules.applied(x.journal.state, a.call, a.found)...)
	if written := x.written(a, r); written != nil {
		reports = append(reports, written)
	}
	if saved != nil {
		reports = append(reports, saved)
	}
	return x.journal.commitPaid(reports...)
}
