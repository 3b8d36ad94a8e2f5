package record

import (
	"encoding/json"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/sensitive"
)

// Shown says what the events of a run may show of its records. It is part of the run's log, so that its events are always derived
// alike. Nil shows everything.
type Shown struct {
	Redact    int  `json:"redact,omitempty"`    // version of the rules by which keys and personal data are taken out of texts; 0: they are not
	NoInputs  bool `json:"noInputs,omitempty"`  // not the arguments of tool calls
	NoOutputs bool `json:"noOutputs,omitempty"` // not the results of tool calls
	NoReplies bool `json:"noReplies,omitempty"` // not the text of replies: the calls are in it
}

// ShownByDefault is what the events of a run show when no policy says anything.
func ShownByDefault() *Shown { return &Shown{Redact: sensitive.Version} }

// Forked is what the events of a fork show that an agent continues with: no more than those of the run that it was forked from, and
// no more than the agent lets them.
func (w *Shown) Forked(agent *messages.Definition) *Shown {
	shown := *ShownByDefault()
	if w != nil {
		shown = *w
	}
	var own messages.EventRules
	if agent.Policy != nil && agent.Policy.Events != nil {
		own = *agent.Policy.Events
	}
	if own.Redact == nil || *own.Redact {
		shown.Redact = sensitive.Version
	}
	shown.NoInputs = shown.NoInputs || own.Inputs == messages.PolicyExclude
	shown.NoOutputs = shown.NoOutputs || own.Outputs == messages.PolicyExclude
	shown.NoReplies = shown.NoInputs && agent.Planner != messages.PlannerTools
	return &shown
}

// text is a text as events may show it. A version that this code does not know is newer, and hides no less than the newest known.
func (w *Shown) text(s string) string {
	if w.Redact == 0 {
		return s
	}
	return sensitive.Redact(s)
}

// raw is text for a JSON value.
func (w *Shown) raw(value string) string {
	if w.Redact == 0 {
		return value
	}
	return sensitive.RedactJSON(value)
}

func (w *Shown) json(value json.RawMessage) json.RawMessage {
	if w.Redact == 0 || len(value) == 0 {
		return value
	}
	text := string(value)
	if out := sensitive.RedactJSON(text); out != text {
		return json.RawMessage(out)
	}
	return value
}

// arguments are those of a tool call.
func (w *Shown) arguments(args string) string {
	if w.NoInputs {
		return ""
	}
	return w.raw(args)
}

func (r *Started) shownBy(w *Shown) Record {
	c := *r
	if c.Task.Input = messages.Input(w.blocks(r.Task.Input)); r.Parent != nil && w.NoInputs { // it was the arguments of a call
		c.Task.Input = nil
	}
	return &c
}

func (r *ModelReplied) shownBy(w *Shown) Record {
	content := w.blocks(r.Message.Content)
	if same(content, r.Message.Content) {
		return r
	}
	c := *r
	c.Message.Content = content
	return &c
}

func (r *ToolStarted) shownBy(w *Shown) Record {
	args := w.arguments(r.Call.Arguments)
	if args == r.Call.Arguments {
		return r
	}
	c := *r
	c.Call.Arguments = args
	return &c
}

func (w *Shown) ofResult(r *ToolReturned) Record {
	var content []messages.Block
	var meta json.RawMessage
	if !w.NoOutputs {
		content, meta = w.blocks(r.Result.Content), w.json(r.Meta)
	}
	if same(content, r.Result.Content) && same(meta, r.Meta) {
		return r
	}
	c := *r
	c.Result.Content, c.Meta = content, meta
	return &c
}

// same reports whether two slices are one.
func same[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// blocks are the content of a message. They are copied only if anything changes.
func (w *Shown) blocks(in []messages.Block) []messages.Block {
	out := in
	for i := range in {
		was := &in[i]
		now := *was
		if now.Text = w.text(was.Text); w.NoReplies && was.Text != "" {
			now.Text = ""
		}
		changed := now.Text != was.Text
		if r := was.Reasoning; r != nil {
			text := w.text(r.Text)
			if w.NoReplies {
				text = ""
			}
			if text != r.Text {
				now.Reasoning, changed = &messages.Reasoning{Family: r.Family, Text: text}, true
			}
		}
		if c := was.ToolCall; c != nil {
			if args := w.arguments(c.Arguments); args != c.Arguments {
				call := *c
				call.Arguments = args
				now.ToolCall, changed = &call, true
			}
		}
		if !changed {
			continue
		}
		if &out[0] == &in[0] {
			out = slices.Clone(in)
		}
		out[i] = now
	}
	return w.together(out)
}

// together redacts what is only found when the texts of a message are read as one, as events show them.
func (w *Shown) together(in []messages.Block) []messages.Block {
	texts := 0
	for i := range in {
		if in[i].Text != "" {
			texts++
		}
	}
	if texts < 2 {
		return in
	}
	said := messages.Message{Content: in}
	all := said.Text()
	clean := w.text(all)
	if clean == all {
		return in
	}
	out := slices.Clone(in)
	for i := range out {
		if out[i].Text != "" {
			out[i].Text, clean = clean, ""
		}
	}
	return out
}

func (w *Shown) ofPlan(r *Planned) Record {
	c := *r
	if c.Reason = w.text(r.Reason); r.Plan == nil {
		return &c
	}
	plan := *r.Plan
	plan.Steps = append([]messages.PlanStep(nil), r.Plan.Steps...)
	for i := range plan.Steps {
		s := &plan.Steps[i]
		s.Description = w.text(s.Description)
		if s.Args = w.json(s.Args); w.NoInputs {
			s.Args = nil
		}
	}
	c.Plan = &plan
	return &c
}

func (w *Shown) ofPark(r *Parked) Record {
	c := *r
	c.Question = w.text(r.Question)
	if r.Cause != nil {
		cause := *r.Cause
		cause.Message = w.text(cause.Message)
		c.Cause = &cause
	}
	if r.Approval != nil {
		asked := *r.Approval
		asked.Arguments = w.arguments(asked.Arguments)
		c.Approval = &asked
	}
	return &c
}

func (d *Decided) shownBy(w *Shown) Record {
	c := *d
	c.Reason, c.Arguments = w.text(d.Reason), w.arguments(d.Arguments)
	return &c
}

func (w *Shown) ofEnd(r *Finished) *Finished {
	if w == nil || w.Redact == 0 && !w.NoInputs {
		return r
	}
	c := *r
	end := &c.Result
	end.MemoryDeltas = w.changes(end.MemoryDeltas)
	end.Provenance = w.provenance(end.Provenance)
	if s, ok := end.Result.(string); ok {
		end.Result = w.text(s)
	}
	end.Output, end.Summary = w.json(end.Output), w.text(end.Summary)
	if end.Error != nil {
		why := *end.Error
		why.Message = w.text(why.Message)
		end.Error = &why
	}
	return &c
}

// provenance is what a result says it came from. The names of documents are texts of others.
func (w *Shown) provenance(p *messages.Provenance) *messages.Provenance {
	if p == nil || len(p.Memories) == 0 {
		return p
	}
	c := *p
	c.Memories = slices.Clone(p.Memories)
	for i := range c.Memories {
		c.Memories[i].Document = w.text(c.Memories[i].Document)
	}
	return &c
}

func (w *Shown) ofChild(r *ChildEnded) Record {
	c := *r
	if c.Output = w.text(r.Output); w.NoOutputs {
		c.Output = ""
	}
	if r.Error != nil {
		why := *r.Error
		why.Message = w.text(why.Message)
		c.Error = &why
	}
	return &c
}
