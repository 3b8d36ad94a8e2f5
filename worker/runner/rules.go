package runner

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker/agent"
	"github.com/longshore-run/longshore/worker/limits"
	"github.com/longshore-run/longshore/worker/policy"
)

// policyWork applies the rules of the fleet, the tenant and the agent. What they make of something is recorded with it, once:
// what another owner has recorded is part of the state. Only the execution's goroutine uses it.
type policyWork struct {
	*job

	calls *callBook
	state func() *agent.State

	known bool // written by of; rules and broken too
	rules *policy.Rules
	// broken says that rules cannot be read, which only a newer version of a worker can have let pass. The run then fails.
	broken error
}

// of are the rules for runs of an agent; nil: there are none.
func (x *policyWork) of(d *messages.Definition) *policy.Rules {
	if !x.known {
		var above []record.RulesFor
		if p := x.state().Parent; p != nil {
			above = p.Rules
		}
		x.rules, x.broken = x.made(d, above)
		x.known = true
	}
	return x.rules
}

// rates are the rates of a tool.
func (x *policyWork) rates(s *agent.State, tool string) []queue.Rate {
	return x.of(s.Agent).Rates(tool)
}

// made are the rules for an agent below others.
func (x *policyWork) made(d *messages.Definition, above []record.RulesFor) (*policy.Rules, error) {
	var operator []policy.Layer
	if x.cfg.Policies != nil {
		operator = x.cfg.Policies(x.run.Tenant)
	}
	return policy.For(operator, above, d)
}

// beforeCalls is the gate of the rules about tool calls: it records which are refused, with which arguments others are made,
// and which wait for a person.
func (x *policyWork) beforeCalls(s *agent.State, next agent.Action) (v limits.Verdict) {
	rules := x.of(s.Agent)
	if x.broken != nil {
		if _, ends := next.(*agent.Finish); !ends { // nor does it become an example
			v.Instead = &agent.Finish{Status: messages.StatusFailed, Err: &messages.RunError{Code: messages.CodePolicy, Message: x.broken.Error()}}
		}
		return v
	}
	if _, calls := next.(*agent.CallTools); !calls || rules == nil {
		return v
	}
	for i := range s.Open {
		if c := &s.Open[i]; c.Result == nil && c.Answer == nil && c.Started == "" {
			v.Records = append(v.Records, x.judge(rules, s, c)...)
		}
	}
	return v
}

// judge is what the rules make of one call; nothing of a call that they have judged already.
func (x *policyWork) judge(rules *policy.Rules, s *agent.State, c *agent.OpenCall) (rs []record.Record) {
	applied := func(f policy.Finding) *record.PolicyApplied {
		return &record.PolicyApplied{
			Point: f.Point, Action: f.Action, Rule: f.Rule, Source: f.Source, Reason: f.Reason,
			Step: s.Step, StepID: s.StepID(c.Call.ID), Tool: x.cfg.Redact(c.Call.Name), Call: c.Call.ID, Edit: f.Edit,
		}
	}
	use, found, refusal := rules.Call(c.Call.Name, c.Call.Arguments)
	if refusal != nil {
		return []record.Record{applied(*refusal)}
	}
	for i, f := range found {
		r := applied(f)
		if i == len(found)-1 {
			r.Arguments = use
			delete(x.calls.args, c.Call.ID) // others are checked in their place
		}
		rs = append(rs, r)
	}
	if c.Judged { // a person was asked because of a rule; one who is asked because of the agent should know that a rule asks too
		return rs
	}
	if f := rules.Asks(x.asked(s, c.Call.Name, use)); f != nil {
		rs = append(rs, applied(*f))
	}
	return rs
}

// asked is a call as rules see that have one wait for a person.
func (*policyWork) asked(s *agent.State, tool, arguments string) policy.Asked {
	return policy.Asked{
		Tool: tool, Arguments: json.RawMessage(arguments), Cost: messages.AddCost(s.Cost, s.Below.Cost), Had: s.Had(), First: !slices.Contains(s.Used, tool),
	}
}

// withheld stands where a rule has blocked a text.
const withheld = "[withheld by policy]"

// applied is the records of findings in a reply, or about one of its calls or the result of one. A finding is recorded once.
func (x *policyWork) applied(s *agent.State, c messages.ToolCall, found []policy.Finding) (rs []record.Record) {
	for i, f := range found {
		if slices.Index(found, f) != i {
			continue
		}
		rs = append(rs, &record.PolicyApplied{
			Point: f.Point, Action: f.Action, Rule: f.Rule, Source: f.Source, Reason: f.Reason, Step: s.Step,
			StepID: s.StepID(c.ID), Tool: x.cfg.Redact(c.Name), Call: c.ID,
		})
	}
	return rs
}

// answered takes secrets, and what rules say, out of a result that came from outside while the run was parked, and returns the records
// of what was found.
func (x *policyWork) answered(s *agent.State, c messages.ToolCall, r *record.ToolReturned) (rs []record.Record) {
	res, found := judged(x.of(s.Agent), c.Name, tools.Result{Content: x.redact(r.Result.Content), IsError: r.Result.IsError, Code: r.Code})
	r.Result.Content, r.Result.IsError, r.Code = res.Content, res.IsError, res.Code
	return x.applied(s, c, found)
}

// reply applies the rules to what a model wrote. The calls of a reply are judged when they are about to be made; what rules take
// out of their arguments is taken out of the reply already, so that the log never holds it. A blocked reply makes no calls.
func (x *policyWork) reply(s *agent.State, m *messages.Message) (rs []record.Record) {
	rules := x.of(s.Agent)
	if rules == nil {
		return nil
	}
	content, told, blocked := rules.Blocks(messages.PolicyReply, "", m.Content)
	if m.Content = content; blocked {
		m.Content = messages.TextContent(withheld)
	}
	for i := range m.Content {
		if thought := m.Content[i].Reasoning; thought != nil {
			text, found, _ := rules.Text(messages.PolicyReply, "", thought.Text) // what is blocked comes back empty
			if told = append(told, found...); text != thought.Text {
				m.Content[i].Reasoning = &messages.Reasoning{Family: thought.Family, Text: text} // the signature was of another
			}
		}
	}
	rs = x.applied(s, messages.ToolCall{}, told)
	for i := range m.Content {
		c := m.Content[i].ToolCall
		if c == nil {
			continue
		}
		use, found, refusal := rules.Call(c.Name, c.Arguments)
		if refusal != nil || len(found) == 0 {
			continue
		}
		clean := *c
		clean.Arguments = use
		m.Content[i].ToolCall = &clean
		rs = append(rs, x.applied(s, *c, found)...)
	}
	return rs
}

// withoutSecrets takes configured secrets out of what a task brings.
func (x *policyWork) withoutSecrets(task *messages.Task) {
	task.Input, task.Context = messages.Input(x.redact(task.Input)), x.redactArgs(task.Context)
	task.Plan, task.Files = x.redactPlan(task.Plan), slices.Clone(task.Files)
	for i := range task.Files {
		if text, ok := textOf(&task.Files[i]); ok {
			setText(&task.Files[i], text, x.cfg.Redact(text))
		}
	}
	task.Labels = maps.Clone(task.Labels)
	for name, value := range task.Labels {
		task.Labels[name] = x.cfg.Redact(value)
	}
}

// secretName is the field of the task that names a file by a secret, which cannot be taken out of it: it would be another file. Empty:
// there is none.
func (x *policyWork) secretName(task *messages.Task) string {
	holds := func(s string) bool { return x.cfg.Redact(s) != s }
	for i := range task.Files {
		f := &task.Files[i]
		switch {
		case holds(f.Path):
			return fmt.Sprintf("files[%d].path", i)
		case f.Git != nil && holds(f.Git.URL):
			return fmt.Sprintf("files[%d].git.url", i)
		case f.Git != nil && (holds(f.Git.Path) || holds(f.Git.Into)):
			return fmt.Sprintf("files[%d].git", i)
		}
	}
	return ""
}

// input takes what rules say out of what a run that is about to begin was given, before it is part of the log: its input, its facts, its
// plan and the text of its files. An error says that something is blocked; nothing of it is then part of the task.
func (x *policyWork) input(started *record.Started) (rs []record.Record, blocked *messages.RunError) {
	task := &started.Task
	rules := x.of(&started.Agent)
	started.Shown = rules.Shown(&started.Agent)
	if x.broken != nil {
		return nil, &messages.RunError{Code: messages.CodePolicy, Message: x.broken.Error()}
	}
	if rules == nil {
		return nil, nil
	}
	refuse := func(found ...policy.Finding) ([]record.Record, *messages.RunError) {
		task.Input, task.Context, task.Plan, task.Files = messages.TextInput(withheld), nil, nil, nil
		f := found[len(found)-1]
		return aboutInput(found), &messages.RunError{Code: messages.CodePolicy, Message: "the task's input: " + f.Reason}
	}
	input, found, blocks := rules.Blocks(messages.PolicyInput, "", task.Input)
	if blocks {
		return refuse(found[len(found)-1])
	}
	task.Input = input
	facts, fs, stop := rules.JSON(messages.PolicyInput, "", string(task.Context))
	if stop != nil {
		return refuse(append(found, *stop)...)
	}
	if found = append(found, fs...); len(fs) > 0 {
		task.Context = json.RawMessage(facts)
	}
	fs, stop = planInput(rules, task.Plan)
	if stop != nil {
		return refuse(append(found, *stop)...)
	}
	found = append(found, fs...)
	fs, stop = filesInput(rules, task.Files)
	if stop != nil {
		return refuse(append(found, *stop)...)
	}
	return aboutInput(append(found, fs...)), nil
}

// textOf is the text that a file of a task brings, also as data; false: it brings none.
func textOf(f *messages.TaskFile) (string, bool) {
	data, ok := f.Content()
	return string(data), ok && utf8.Valid(data)
}

// setText replaces the text of a file, if it is another.
func setText(f *messages.TaskFile, was, text string) {
	if text != was {
		f.Text, f.Data = &text, nil
	}
}

// filesInput applies the rules to the files that a task brings. What it names by a hash, they do not see.
func filesInput(rules *policy.Rules, files []messages.TaskFile) (found []policy.Finding, stop *policy.Finding) {
	for i := range files {
		was, ok := textOf(&files[i])
		if !ok {
			continue
		}
		text, fs, blocked := rules.Text(messages.PolicyInput, "", was)
		if found = append(found, fs...); blocked {
			return nil, &fs[len(fs)-1]
		}
		setText(&files[i], was, text)
	}
	return found, nil
}

// redactPlan is a copy of a plan without configured secrets.
func (x *policyWork) redactPlan(p *messages.Plan) *messages.Plan {
	if p == nil {
		return nil
	}
	clean := *p
	clean.Steps = slices.Clone(p.Steps)
	for i := range clean.Steps {
		step := &clean.Steps[i]
		step.Description, step.Args = x.cfg.Redact(step.Description), x.redactArgs(step.Args)
	}
	return &clean
}

// planInput applies the rules to a plan that a task brings.
func planInput(rules *policy.Rules, p *messages.Plan) (found []policy.Finding, stop *policy.Finding) {
	if p == nil {
		return nil, nil
	}
	for i := range p.Steps {
		step := &p.Steps[i]
		text, fs, blocked := rules.Text(messages.PolicyInput, "", step.Description)
		if found = append(found, fs...); blocked {
			return nil, &fs[len(fs)-1]
		}
		args, fs, blocks := rules.JSON(messages.PolicyInput, "", string(step.Args))
		if blocks != nil {
			return nil, blocks
		}
		if step.Description = text; len(fs) > 0 {
			step.Args, found = json.RawMessage(args), append(found, fs...)
		}
	}
	return found, nil
}

// aboutInput is the records of findings in what a run was given, each once.
func aboutInput(found []policy.Finding) (rs []record.Record) {
	for i, f := range found {
		if slices.Index(found, f) != i {
			continue
		}
		rs = append(rs, &record.PolicyApplied{Point: f.Point, Action: f.Action, Rule: f.Rule, Source: f.Source, Reason: f.Reason})
	}
	return rs
}

// silent reports whether replies must not be shown while they are written: rules judge them whole.
func (x *policyWork) silent(d *messages.Definition) bool {
	rules := x.of(d)
	return rules.Judges(messages.PolicyReply) || rules.Judges(messages.PolicyArguments)
}

// withholds reports whether what a program writes must not be shown while it runs: rules judge the whole of it.
func (x *policyWork) withholds(d *messages.Definition) bool {
	return x.of(d).Judges(messages.PolicyOutput)
}
