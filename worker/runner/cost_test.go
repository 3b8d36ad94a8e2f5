package runner

import (
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
)

type priceOf map[string]float64

func (p priceOf) Cost(_, name string, _ messages.Usage) (usd float64, ok bool) {
	usd, ok = p[name]
	return usd, ok
}

func TestCostOfAReply(t *testing.T) {
	x := &job{cfg: &Config{Prices: priceOf{"gpt": 1, "gpt-mini": 2}}}
	for name, tc := range map[string]struct {
		reply model.Reply
		want  *float64
	}{
		"as the provider names it": {model.Reply{Model: "gpt-mini", Asked: "gpt"}, new(2.0)},
		"a dated name":             {model.Reply{Model: "gpt-2024-08-06", Asked: "gpt"}, new(1.0)},
		"no requested model":       {model.Reply{Model: "gpt-2024-08-06"}, nil},
		"another model":            {model.Reply{Model: "other", Asked: "gpt"}, nil},
		"from the cache":           {model.Reply{Model: "other", Cached: true}, new(0.0)},
	} {
		got := x.cost(&tc.reply)
		if (got == nil) != (tc.want == nil) || got != nil && *got != *tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}
