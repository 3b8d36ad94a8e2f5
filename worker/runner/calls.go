package runner

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/limits"
)

// callBook knows the tool calls that the model has asked for, beyond what the state says of them: which may be made, are on
// their way, or want to wait. Only the execution's goroutine uses it.
type callBook struct {
	*job

	asks    func(*agent.State, messages.ToolCall) bool // reports whether hooks decide about a call first
	permits func(*agent.State, messages.ToolCall) bool // reports whether the rates of its tool let a call be made now
	// judged takes out of a result that came from outside what must not be in it, and returns the records about that.
	judged func(*agent.State, messages.ToolCall, *record.ToolReturned) []record.Record

	args   map[string]json.RawMessage   // of calls that may be made, by call id; written by check and renew
	from   map[string]string            // what args were made of; written by check
	made   map[string]bool              // made by this owner, or on their way, by call id; written by toolWork and renew
	flying map[string]bool              // on their way, by call id; written by toolWork
	parks  map[string]*tools.Park       // wishes to wait, by call id; written by toolWork and renew
	drafts map[string]*record.Delegated // delegations that are not in the log yet, by call id; written by toolWork, admit and renew
}

// renew forgets all calls: a model has replied, and ids may come again.
func (x *callBook) renew() {
	clear(x.args)
	clear(x.from)
	clear(x.made)
	clear(x.parks)
	clear(x.drafts)
}

// anyFlying reports whether calls are on their way.
func (x *callBook) anyFlying() bool { return len(x.flying) > 0 }

// beforeCalls is the gate of calls that wait for a person, or for what they asked to wait for. What is decided about calls
// without any effect is recorded first.
func (x *callBook) beforeCalls(s *agent.State, next agent.Action) (v limits.Verdict) {
	if _, calls := next.(*agent.CallTools); !calls {
		return v
	}
	rs, instead := x.admit(s)
	if v.Records = rs; len(rs) == 0 && instead != nil {
		if park, waits := instead.(*agent.Park); waits {
			s.UntilEnd(&park.Parked)
		}
		v.Instead = instead
	}
	return v
}

// delegates reports whether a call has delegated, or is about to.
func (x *callBook) delegates(s *agent.State, call string) bool {
	return x.drafts[call] != nil || s.Delegated(call) != nil
}

// delegated is what a call that delegates does next, once no call is in flight: its children are named, then it waits for them.
func (x *callBook) delegated(s *agent.State, call string) (named record.Record, instead agent.Action) {
	if d := s.Delegated(call); d != nil {
		return nil, awaitChildren(d)
	}
	d := x.drafts[call]
	if delete(x.drafts, call); d.Number != s.Delegations+1 || s.Delegation != nil && !s.Delegation.Done { // another call came first
		return nil, nil
	}
	return d, nil
}

// parkForApproval asks for a call that must not begin before a person has agreed.
func (x *callBook) parkForApproval(s *agent.State, c *agent.OpenCall) *agent.Park {
	until := x.now().Add(s.Agent.ApprovalExpires())
	asked := messages.NewApproval(s.Agent.Name, s.Step, s.StepID(c.Call.ID), c.Call)
	asked.Arguments, asked.Editable = x.cfg.Redact(asked.Arguments), s.Editable(c)
	return &agent.Park{Parked: record.Parked{Reason: queue.ParkApproval, Call: c.Call.ID, Until: &until, Approval: asked}}
}

// admit decides what it can about the open calls without an effect: which are refused, were answered while the run was parked, have
// an outcome that can no longer be known, or begin now. It returns what to do instead when all that is left is to wait for a call.
func (x *callBook) admit(s *agent.State) (rs []record.Record, instead agent.Action) {
	for i := range s.Open {
		c := &s.Open[i]
		r := x.foregone(s, c)
		if r == nil {
			continue
		}
		if rs = append(rs, r); c.Answer != nil && c.Refused == "" { // it came from outside
			rs = append(rs, x.judged(s, c.Call, r)...)
		}
	}
	if rs != nil {
		return rs, nil // the state moves on first
	}
	wave := x.wave(s)
	var waiting []string
	for i := range wave {
		c := &wave[i]
		if unapproved(c) {
			// The others of the wave are made first.
			if len(x.flying) == 0 && !anyApproved(wave) {
				return rs, x.parkForApproval(s, c)
			}
			continue
		}
		if wish := x.parks[c.Call.ID]; wish != nil {
			if len(x.flying) == 0 {
				instead = x.park(c.Call.ID, wish)
			}
			continue
		}
		if x.delegates(s, c.Call.ID) {
			waiting = append(waiting, c.Call.ID)
			continue
		}
		if c.Started == "" && x.asks(s, c.Call) {
			continue // a hook decides first, once no call is in flight
		}
		if !x.permits(s, c.Call) {
			continue // the next
		}
		if c.Started == "" {
			rs = append(rs, &record.ToolStarted{Step: s.Step, Call: c.Call, StepID: s.StepID(c.Call.ID), Edited: c.Edited})
		}
	}
	if rs != nil {
		return rs, nil
	}
	if len(waiting) > 0 && instead == nil && len(x.flying) == 0 {
		named, next := x.delegated(s, waiting[0])
		if named != nil {
			return []record.Record{named}, nil
		}
		instead = next
	}
	return nil, instead
}

// due are the calls of the wave that are made next, if their rates let them. There are none while something else is to be done first.
func (x *callBook) due(s *agent.State) (due []agent.OpenCall) {
	for i := range s.Open {
		if x.foregone(s, &s.Open[i]) != nil {
			return nil // the state moves on first
		}
	}
	wave := x.wave(s)
	for i := range wave {
		c := &wave[i]
		switch {
		case x.parks[c.Call.ID] != nil, x.delegates(s, c.Call.ID): // it is in no log yet what they wait for
			return nil
		case unapproved(c), c.Started == "" && x.asks(s, c.Call):
		default:
			due = append(due, *c)
		}
	}
	return due
}

// unmade are the calls that this owner has begun in the log and not made.
func (x *callBook) unmade(s *agent.State) (ids []string) {
	for i := range s.Open {
		if c := &s.Open[i]; c.Result == nil && c.Started == x.claimID && !x.made[c.Call.ID] {
			ids = append(ids, c.Call.ID)
		}
	}
	return ids
}

func (x *callBook) park(call string, wish *tools.Park) *agent.Park {
	p := record.Parked{Reason: wish.Reason, Call: call, Question: x.cfg.Redact(wish.Question)}
	if wish.For > 0 {
		until := x.now().Add(wish.For)
		p.Until = &until
	}
	return &agent.Park{Parked: p}
}

// foregone is the result of a call that is not to be made; nil: it is to be made, or is on its way, or done.
func (x *callBook) foregone(s *agent.State, c *agent.OpenCall) *record.ToolReturned {
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

// checkAll checks the calls of a reply while its run does not hold up others yet.
func (x *callBook) checkAll(reply *messages.Message, allowed []messages.ToolSpec) {
	for i := range reply.Content {
		if c := reply.Content[i].ToolCall; c != nil {
			x.check(*c, allowed)
		}
	}
}

// check checks a call, once, and keeps its arguments.
func (x *callBook) check(c messages.ToolCall, allowed []messages.ToolSpec) (refusal *tools.Result) {
	if x.args[c.ID] != nil && x.from[c.ID] == c.Arguments {
		return nil
	}
	delete(x.args, c.ID) // a person, or a rule, has given it others
	checked := make(chan json.RawMessage, 1)
	go func() { // a validator needs more stack than the rest of a run, whose goroutine would keep it
		args, why := x.cfg.Tools.Check(c, allowed)
		refusal = why
		checked <- args
	}()
	if args := <-checked; refusal == nil {
		x.args[c.ID], x.from[c.ID] = args, c.Arguments
	}
	return refusal
}

// wave is the calls to make next: neighbouring ones that cannot disturb each other, as many as the agent allows, in the
// model's order. What can, their effects and resources tell.
func (x *callBook) wave(s *agent.State) (wave []agent.OpenCall) {
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

// unapproved reports whether a call waits for a person to agree to it.
func unapproved(c *agent.OpenCall) bool { return c.Approve && c.Answer == nil }

// anyApproved reports whether a call of a wave may be made.
func anyApproved(wave []agent.OpenCall) bool {
	return slices.ContainsFunc(wave, func(c agent.OpenCall) bool { return !unapproved(&c) })
}

// returned is the result of a call that was not made.
func returned(s *agent.State, c *agent.OpenCall, res messages.ToolResult, code messages.Code) *record.ToolReturned {
	res.CallID = c.Call.ID
	return &record.ToolReturned{Step: s.Step, Name: c.Call.Name, Result: res, Code: code, StepID: s.StepID(c.Call.ID)}
}
