package governor

import (
	"context"
	"iter"

	"github.com/longshore-run/longshore/worker/model"
)

// governed is an endpoint whose calls wait for their turn.
type governed struct {
	governor *Governor
	endpoint string
	provider model.Provider
}

var _ model.Provider = (*governed)(nil)

// Wrap puts the governor around the endpoint of that name. A call that would wait longer than MaxWait ends with an
// *model.Error of class RateLimited, whose RetryAfter says how long the wait is thought to be, and is always so long
// that the run parks instead of asking again from its slot. A call whose context ends gives up its place in the queue at once.
func (g *Governor) Wrap(provider string, p model.Provider) model.Provider {
	return &governed{g, provider, p}
}

// Stream implements model.Provider.
func (p *governed) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		limits := p.governor.config.Limits(p.endpoint, r.Model).clean()
		if limits.isNone() {
			p.provider.Stream(ctx, r)(yield)
			return
		}
		c := &call{
			caller: caller{pool{p.endpoint, r.Model}, r.Tenant},
			lease:  leaseID(r.Key),
			limits: limits, tokens: estimate(&r),
		}
		grant, err := p.governor.admit(ctx, c)
		if err != nil {
			yield(model.Delta{}, err)
			return
		}
		var reply *model.Reply
		var failed error
		defer func() { grant.done(used(c.tokens, reply, failed)) }()
		for d, err := range p.provider.Stream(ctx, r) {
			if d.Reply != nil {
				reply = d.Reply
			}
			if err != nil {
				failed = err
			}
			if !yield(d, err) {
				return
			}
		}
	}
}
