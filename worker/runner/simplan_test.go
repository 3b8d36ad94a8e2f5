package runner_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/model"
)

// planSeeds is from where on a seed of the simulation is a run with a plan.
const planSeeds = 1 << 20

// simPlan is the plan of a seed.
type simPlan struct {
	plan    *messages.Plan
	given   bool
	observe string
	fails   string // id of the step whose read fails
	adapts  bool   // the first observation inserts a step
}

// newSimPlan makes a plan of up to five steps; its calls are also a script, so that undisturbed knows the tools.
func newSimPlan(seed uint64) (*simPlan, script) {
	r := rand.New(rand.NewPCG(seed, 8))
	p := &simPlan{
		plan: &messages.Plan{}, given: r.IntN(2) == 0, adapts: r.IntN(2) == 0, fails: fmt.Sprint("s", r.IntN(8)),
		observe: []string{"", messages.ObserveAlways, messages.ObserveOnFailure, messages.ObserveNever}[r.IntN(4)],
	}
	var calls []messages.ToolCall
	for i := range 1 + r.IntN(5) {
		s := messages.PlanStep{
			ID: fmt.Sprint("s", i), Description: "A step.", Tool: []string{"read", "read", "idem", "once", "ask"}[r.IntN(5)],
			Critical: new(r.IntN(3) == 0),
		}
		for d := range i {
			if r.IntN(3) == 0 {
				s.DependsOn = append(s.DependsOn, fmt.Sprint("s", d))
				s.Args = json.RawMessage(fmt.Sprintf(`{"x":"${steps.s%d.output}"}`, d))
			}
		}
		if r.IntN(8) == 0 {
			s.RequiredApprovals = []string{"a person"}
		}
		p.plan.Steps = append(p.plan.Steps, s)
		calls = append(calls, messages.ToolCall{ID: s.ID, Name: s.Tool})
		if len(s.RequiredApprovals) > 0 {
			calls = append(calls, messages.ToolCall{Name: "ask"}) // it parks, and may expire
		}
	}
	return p, script{calls}
}

func (p *simPlan) define(d *messages.Definition) {
	d.Planner, d.Observe = messages.PlannerPlan, p.observe
	if p.given {
		d.Plan = p.plan
	}
}

// planned answers by what it is asked alone.
func (m simModel) planned(req model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if err := m.p.op("model"); err != nil {
			yield(model.Delta{}, err)
			return
		}
		if err := req.Begins(); err != nil {
			yield(model.Delta{}, err)
			return
		}
		m.p.w.called(m.p, func(r record.Record) bool {
			rep, ok := r.(*record.ModelReplied)
			return ok && req.Key == fmt.Sprintf("t.r.%d.model", rep.Step)
		})
		text := "the summary"
		switch prompt := req.Messages[0].Content[0].Text; {
		case req.Format == nil:
		case req.Format.Name == "plan":
			b, _ := json.Marshal(m.p.w.plan.plan)
			text = string(b)
		case m.p.w.plan.adapts && !strings.Contains(prompt, "- extra"):
			text = `{"decision":"adapt","insert":[{"id":"extra","description":"One more.","tool":"read"}]}`
		default:
			text = `{"decision":"continue"}`
		}
		yield(model.Delta{Reply: &model.Reply{
			Message: messages.Message{Content: messages.TextContent(text)}, Stop: messages.StopEnd, Usage: messages.Usage{Input: 1},
		}}, nil)
	}
}

// Runs with a plan keep every promise too: steps that run together, parks, approvals, decisions of the model.
func TestSimulationOfPlans(t *testing.T) {
	n := seeds(t) / 4
	sum := simulate(t, planSeeds, n, allRules, nil)
	t.Logf("%d seeds: %+v", n, sum)
	if sum.total() != 0 {
		t.Errorf("first: %s", sum.first)
	}
}
