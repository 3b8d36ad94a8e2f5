package runner_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/model"
)

// vectorPrices know one model for vectors, which costs a dollar a token, and that of replies, which is free.
type vectorPrices struct{}

func (vectorPrices) Cost(provider, name string, u messages.Usage) (float64, bool) {
	switch {
	case provider == "openai" && name == "priced":
		return float64(u.Input), true
	case strings.HasPrefix(name, "priced") || name == "unpriced":
		return 0, false
	default:
		return 0, true
	}
}

// What a run has embedded counts as its usage and its cost, whether it recalls by itself or a tool does; a model without a price leaves the cost
// known, and a budget that is used up by it ends the run.
func TestEmbeddingsAreUsage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		model  string
		budget *messages.Budget
		cost   float64
		tokens int64
		code   messages.Code
	}{
		"priced":          {"priced", nil, 12, 12, ""},
		"without a price": {"unpriced", nil, 0, 12, ""},
		"cost used up":    {"priced", &messages.Budget{Caps: messages.Caps{Cost: new(6.5)}}, 7, 7, messages.CodeBudget},
		"tokens used up":  {"unpriced", &messages.Budget{Caps: messages.Caps{Tokens: 7}}, 0, 7, messages.CodeBudget},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newRemembering(t, messages.RecallPolicy{})
			w.def.Budget, w.def.Tools = tc.budget, []string{"echo"}
			w.memory.before = func(ctx context.Context, _ int) error {
				longterm.Count(ctx, longterm.Embeddings{Model: tc.model, Calls: 1, Tokens: 7})
				return nil
			}
			w.prices = vectorPrices{}
			w.echo = func(ctx context.Context) {
				longterm.Count(ctx, longterm.Embeddings{Model: tc.model, Calls: 1, Tokens: 2})
				longterm.Count(ctx, longterm.Embeddings{Model: tc.model, Calls: 1, Tokens: 3})
			}
			w.reply = func(n int) *model.Reply {
				if n == 1 {
					call := messages.ToolCall{ID: "c1", Name: "echo", Arguments: `{"text":"x"}`}
					return &model.Reply{Message: messages.Message{Content: []messages.Block{{ToolCall: &call}}}, Stop: messages.StopToolCalls, Model: "free"}
				}
				r := say("From pier 4.")
				r.Model = "free"
				return r
			}
			r := w.run()
			if r.CostEstimate == nil || *r.CostEstimate != tc.cost || r.TokenUsage.Input != tc.tokens || r.TokenUsage.Total != tc.tokens {
				t.Errorf("cost %v, usage %+v: %+v", r.CostEstimate, r.TokenUsage, r.Error)
			}
			if got := codeOf(r); got != tc.code {
				t.Errorf("it ended with %q, want %q", got, tc.code)
			}
			var found []record.Embedded
			for rec := range w.records() {
				switch rec := rec.(type) {
				case *record.MemoryRecalled:
					found = append(found, *rec.Embedded)
				case *record.ToolReturned:
					found = append(found, *rec.Embedded)
				}
			}
			want := []record.Embedded{{Model: tc.model, Calls: 1, Tokens: 7}, {Model: tc.model, Calls: 2, Tokens: 5}}
			if tc.model == "priced" {
				want[0].Cost, want[1].Cost = new(7.0), new(5.0)
			}
			if tc.code != "" {
				want = want[:1]
			}
			if diff := cmp.Diff(want, found); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func codeOf(r *messages.AgentResult) messages.Code {
	if r.Error == nil {
		return ""
	}
	return r.Error.Code
}
