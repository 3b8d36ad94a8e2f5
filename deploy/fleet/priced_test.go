package fleet

import (
	"testing"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages"
)

// A name that an agent gives is priced as the model that it is routed to.
func TestPricesOfNames(t *testing.T) {
	key := settings.Models{OpenAIKey: "k", OpenAIModel: "gpt-4o"}
	both := key
	both.Script = "script.yaml"
	for name, tc := range map[string]struct {
		models settings.Models
		model  string
		want   float64
		known  bool
	}{
		"the default":             {key, "", 2.5, true},
		"the provider":            {key, "openai", 2.5, true},
		"its model":               {key, "openai/gpt-4o-mini", 0.15, true},
		"a model":                 {key, "gpt-4.1", 2, true},
		"unknown price":           {key, "meta/llama", 0, false},
		"the script":              {settings.Models{}, "", 0, true},
		"the script beside":       {both, "scripted/x", 0, true},
		"no script":               {key, "scripted/x", 0, false},
		"the default beside it":   {both, "", 2.5, true},
		"any name for the script": {settings.Models{}, "gpt-4o", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := priceTable(tc.models)
			if err != nil {
				t.Fatal(err)
			}
			if usd, ok := p.Cost("", tc.model, messages.Usage{Input: 1_000_000}); ok != tc.known || usd != tc.want {
				t.Errorf("%v, %v; want %v", usd, ok, tc.want)
			}
		})
	}
}
