package fleet

import (
	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/worker/policy"
)

// policies are the rules of the operator for runs of a tenant.
func policies(p *settings.Policy) func(tenant string) []policy.Layer {
	return func(tenant string) []policy.Layer {
		all, own := p.Rules(tenant)
		return []policy.Layer{{Source: "fleet", Policy: all}, {Source: "tenant " + tenant, Policy: own}}
	}
}
