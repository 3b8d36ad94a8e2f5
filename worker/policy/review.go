package policy

import (
	"iter"
	"slices"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// Reviewed is what rules would have made of something in a recorded run.
type Reviewed struct {
	Finding

	Step int
	Tool string
}

// Review reads the log of a run and returns what the rules would have found, in its order. The rules are asked for once, with
// the first record of the run. What a run would have done after a call was refused no log can tell: the rest is judged as it happened.
func Review(log iter.Seq2[record.Entry, error], rules func(*record.Started) (*Rules, error)) ([]Reviewed, error) {
	var r review
	for e, err := range log {
		if err != nil {
			return nil, err
		}
		for _, rec := range e.Records {
			if s, ok := rec.(*record.Started); ok {
				if r.rules, err = rules(s); err != nil {
					return nil, err
				}
			}
			r.judge(rec)
			if s, ok := rec.(*record.Started); ok {
				for _, kept := range s.Prefix {
					r.judge(kept)
				}
			}
		}
	}
	return r.found, nil
}

type review struct {
	rules *Rules
	found []Reviewed
	used  []string // tools that gave results
	had   []string // and those of the runs above, below and before, as Asked.Had
	cost  float64
	asked map[string]bool // calls of the last reply, by id
}

func (r *review) add(step int, tool string, found ...Finding) {
	for _, f := range found {
		one := Reviewed{f, step, tool}
		if n := len(r.found); n == 0 || r.found[n-1] != one { // of the parts of a reply or a result
			r.found = append(r.found, one)
		}
	}
}

func (r *review) judge(rec record.Record) {
	switch rec := rec.(type) {
	case *record.Started:
		r.start(rec)
	case *record.Recalled:
		r.had = append(r.had, rec.Used...)
	case *record.MemoryRecalled:
		for i := range rec.Memories {
			_, found, _ := r.rules.Text(messages.PolicyOutput, messages.ToolRecall, rec.Memories[i].Text)
			r.add(0, messages.ToolRecall, found...)
		}
		if len(rec.Memories) > 0 {
			r.had = append(r.had, messages.ToolRecall)
		}
	case *record.ChildEnded:
		if r.had = append(r.had, rec.Used...); rec.Cost != nil {
			r.cost += *rec.Cost
		}
	case *record.ModelReplied:
		r.reply(rec)
	case *record.ToolStarted:
		if !r.asked[rec.Call.ID] { // it was written as text, or is a step of a plan
			r.call(rec.Step, &rec.Call)
		}
	case *record.ToolReturned:
		r.blocks(messages.PolicyOutput, rec.Step, rec.Name, rec.Result.Content)
		r.json(messages.PolicyOutput, rec.Step, rec.Name, rec.Meta)
		if !slices.Contains(r.used, rec.Name) && rec.Code != messages.CodePolicy && rec.Code != messages.CodeInvalidInput {
			r.used, r.had = append(r.used, rec.Name), append(r.had, rec.Name)
		}
	}
}

func (r *review) start(rec *record.Started) {
	r.blocks(messages.PolicyInput, 0, "", rec.Task.Input)
	r.json(messages.PolicyInput, 0, "", rec.Task.Context)
	if rec.Task.Plan != nil {
		for i := range rec.Task.Plan.Steps {
			step := &rec.Task.Plan.Steps[i]
			_, found, _ := r.rules.Text(messages.PolicyInput, "", step.Description)
			r.add(0, "", found...)
			r.json(messages.PolicyInput, 0, "", step.Args)
		}
	}
	if rec.Parent != nil {
		r.had = append(r.had, rec.Parent.Used...)
	}
}

func (r *review) reply(rec *record.ModelReplied) {
	r.blocks(messages.PolicyReply, rec.Step, "", rec.Message.Content)
	for _, b := range rec.Message.Content {
		if b.Reasoning != nil {
			_, found, _ := r.rules.Text(messages.PolicyReply, "", b.Reasoning.Text)
			r.add(rec.Step, "", found...)
		}
	}
	if rec.Cost != nil {
		r.cost += *rec.Cost
	}
	r.asked = map[string]bool{}
	for _, c := range rec.Message.Calls() {
		r.asked[c.ID] = true
		r.call(rec.Step, &c)
	}
}

func (r *review) json(at messages.PolicyPoint, step int, tool string, value []byte) {
	_, found, refusal := r.rules.JSON(at, tool, string(value))
	if r.add(step, tool, found...); refusal != nil {
		r.add(step, tool, *refusal)
	}
}

func (r *review) blocks(at messages.PolicyPoint, step int, tool string, in []messages.Block) {
	_, found, _ := r.rules.Blocks(at, tool, in)
	r.add(step, tool, found...)
}

func (r *review) call(step int, c *messages.ToolCall) {
	use, found, refusal := r.rules.Call(c.Name, c.Arguments)
	r.add(step, c.Name, found...)
	if refusal != nil {
		r.add(step, c.Name, *refusal)
		return
	}
	asked := Asked{Tool: c.Name, Arguments: []byte(use), First: !slices.Contains(r.used, c.Name), Cost: r.cost, Had: r.had}
	if f := r.rules.Asks(asked); f != nil {
		r.add(step, c.Name, *f)
	}
}
