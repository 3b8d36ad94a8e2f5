package agent_test

import (
	"strings"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/agent"
)

// perMillion is a price list in dollars per million tokens; what it does not hold has no known price.
func perMillion(list map[string]float64) agent.Price {
	return func(_, model string, u messages.Usage) (float64, bool) {
		usd, ok := list[model]
		return usd * float64(u.Input+u.Output) / 1e6, ok
	}
}

// The estimate leaves out the models that the router does.
func TestEstimateGoesByModelsThatMayBeAsked(t *testing.T) {
	price := perMillion(map[string]float64{"cheap": 1, "dear": 1000})
	for name, tc := range map[string]struct {
		models  []string
		ceiling *float64
		fails   string // part of the message; empty: the call is made
	}{
		"the dearest counts":           {[]string{"dear", "cheap"}, nil, "may need"},
		"a model above the ceiling":    {[]string{"dear", "cheap"}, new(2.0), ""},
		"an unknown one":               {[]string{"mystery", "cheap"}, nil, "is unknown"},
		"an unknown one and a ceiling": {[]string{"mystery", "cheap"}, new(2.0), ""},
		"all above the ceiling":        {[]string{"mystery", "dear"}, new(2.0), ""}, // the router says so
	} {
		s := state(t, messages.Definition{
			Models: tc.models, MaxPrice: tc.ceiling, MaxTokens: 1000, Budget: &messages.Budget{Caps: messages.Caps{Cost: new(0.1)}},
		}, messages.Task{Input: messages.TextInput("hi")})
		a, _ := within(s, &agent.CallModel{Step: 1}, begun, price)
		f, ends := a.(*agent.Finish)
		if ends != (tc.fails != "") || ends && !strings.Contains(f.Err.Message, tc.fails) {
			t.Errorf("%s: got %+v, want a failure with %q", name, a, tc.fails)
		}
	}
}
