package fleet

import (
	"time"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/worker/policy"
)

// policies are the rules of the operator for runs of a tenant. A minute of their rates lasts a minute, unless it is given.
func policies(p *settings.Policy, minute time.Duration) func(tenant string) []policy.Layer {
	return func(tenant string) []policy.Layer {
		all, own := p.Rules(tenant)
		return []policy.Layer{{Source: "fleet", Policy: all, Minute: minute}, {Source: "tenant " + tenant, Policy: own, Minute: minute}}
	}
}
