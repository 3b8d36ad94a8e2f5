package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/worker/policy"
)

// The rates of a call are those of every layer that names its tool, each with a count of its own, and the count is the same in all runs
// that share it.
func TestRates(t *testing.T) {
	fleet := layer(t, "fleet", `{"rates":[{"name":"web","tool":"http_*","perMinute":100,"perHour":1000}]}`)
	tenant := layer(t, "tenant acme", `{"rates":[{"name":"web","tool":"*","perMinute":10}]}`)
	agent := layer(t, "agent reporter", `{"rates":[{"name":"slow","tool":"http_get","perHour":1}]}`)
	again := layer(t, "agent reporter", `{"rates":[{"name":"slow","tool":"http_*","perHour":7}]}`)
	for name, c := range map[string]struct {
		layers []policy.Layer
		tool   string
		want   string
	}{
		"no rules":            {nil, "http_get", ""},
		"another tool":        {[]policy.Layer{fleet}, "sql_query", ""},
		"the fleet's":         {[]policy.Layer{fleet}, "http_get", "fleet:web 1000/1h0m0s, fleet:web 100/1m0s"},
		"all":                 {[]policy.Layer{fleet, tenant, agent}, "http_get", "agent:reporter:slow 1/1h0m0s, tenant:acme:web 10/1m0s, fleet:web 1000/1h0m0s, fleet:web 100/1m0s"},
		"a star":              {[]policy.Layer{fleet, tenant, agent}, "sql_query", "tenant:acme:web 10/1m0s"},
		"an agent twice":      {[]policy.Layer{again, agent}, "http_get", "agent:reporter:slow 1/1h0m0s"},
		"twice the other way": {[]policy.Layer{agent, again}, "http_get", "agent:reporter:slow 1/1h0m0s"},
	} {
		r, err := policy.NewRules(c.layers...)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, rate := range r.Rates(c.tool) {
			got = append(got, fmt.Sprintf("%s %d/%v", rate.Key, rate.Limit, rate.Window))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
	r, err := policy.NewRules(fleet, tenant, agent)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{
		"rule slow of agent reporter allows 1 call of http_get in an hour", "rule web of tenant acme allows 10 calls of * in a minute",
		"rule web of the fleet allows 1000 calls of http_* in an hour",
	}
	for i, want := range texts {
		if got := r.Rates("http_get")[i]; got.Text != want {
			t.Errorf("%q, want %q", got.Text, want)
		}
	}
}
