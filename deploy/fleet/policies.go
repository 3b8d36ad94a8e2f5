package fleet

import (
	"slices"
	"time"

	"github.com/longshore-run/longshore/deploy/settings"
	memories "github.com/longshore-run/longshore/dispatcher/service/memory"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/policy"
)

// policies are the rules of the operator for runs of a tenant. A minute of their rates lasts a minute, unless it is given.
func policies(p *settings.Policy, minute time.Duration) func(tenant string) []policy.Layer {
	return func(tenant string) []policy.Layer {
		all, own := p.Rules(tenant)
		return []policy.Layer{{Source: "fleet", Policy: all, Minute: minute}, {Source: "tenant " + tenant, Policy: own, Minute: minute}}
	}
}

// memoryRules are what clients may write to the long-term memory of a tenant: a text is judged as one that a model gives the tool remember.
func memoryRules(p *settings.Policy) func(tenant string) memories.Rule {
	of := policies(p, 0)
	return func(tenant string) memories.Rule {
		rules, err := policy.NewRules(of(tenant)...)
		return func(text string) (string, bool) {
			if err != nil { // rules that cannot be read let nothing pass
				return "", false
			}
			text, _, blocked := rules.Text(messages.PolicyArguments, messages.ToolRemember, text)
			if blocked {
				return "", false
			}
			return rules.Memory(text)
		}
	}
}

// memoryRetention is the longest that long-term memory may hold what is written to a collection of a tenant.
func memoryRetention(p *settings.Policy) func(longterm.Place) time.Duration {
	return func(at longterm.Place) time.Duration {
		var rules []messages.RetainRule
		all, own := p.Rules(at.Tenant)
		for _, of := range []*messages.Policy{all, own} {
			if of != nil {
				rules = slices.Concat(rules, of.Retain)
			}
		}
		return messages.Retention(rules, at.Collection)
	}
}
