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
// the run's agent. What a run would have done after a call was refused no log can tell: the rest is judged as it happened.
func Review(log iter.Seq2[record.Entry, error], rules func(*messages.Definition) (*Rules, error)) ([]Reviewed, error) {
	var r review
	for e, err := range log {
		if err != nil {
			return nil, err
		}
		for _, rec := range e.Records {
			if s, ok := rec.(*record.Started); ok {
				if r.rules, err = rules(&s.Agent); err != nil {
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
	used  []string
	cost  float64
}

func (r *review) add(step int, tool string, found ...Finding) {
	for _, f := range found {
		r.found = append(r.found, Reviewed{f, step, tool})
	}
}

func (r *review) judge(rec record.Record) {
	switch rec := rec.(type) {
	case *record.Started:
		r.blocks(messages.PolicyInput, 0, "", rec.Task.Input)
	case *record.ModelReplied:
		r.blocks(messages.PolicyReply, rec.Step, "", rec.Message.Content)
		if rec.Cost != nil {
			r.cost += *rec.Cost
		}
		for _, c := range rec.Message.Calls() {
			r.call(rec.Step, &c)
		}
	case *record.ToolReturned:
		r.blocks(messages.PolicyOutput, rec.Step, rec.Name, rec.Result.Content)
		if !slices.Contains(r.used, rec.Name) && rec.Code != messages.CodePolicy && rec.Code != messages.CodeInvalidInput {
			r.used = append(r.used, rec.Name)
		}
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
	asked := Asked{Tool: c.Name, Arguments: []byte(use), First: !slices.Contains(r.used, c.Name), Cost: r.cost, Had: r.used}
	if f := r.rules.Asks(asked); f != nil {
		r.add(step, c.Name, *f)
	}
}
