package runner

import (
	"context"
	"math"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
)

// Prices knows what model calls cost. Safe for concurrent use.
type Prices interface {
	// Cost is in US dollars; false: it is unknown, which is not 0. With an empty provider the model is the name that an
	// agent gives, which may be empty too.
	Cost(provider, model string, u messages.Usage) (usd float64, ok bool)
}

// price is an agent.Price.
func (x *execution) price(provider, name string, u messages.Usage) (float64, bool) {
	if x.cfg.Prices == nil {
		return 0, false
	}
	usd, ok := x.cfg.Prices.Cost(provider, name, u)
	if !ok || !(usd >= 0) || math.IsInf(usd, 0) {
		return 0, false
	}
	return messages.RoundCost(usd), true
}

// cost is what a reply cost; nil: unknown.
func (x *execution) cost(r *model.Reply) *float64 {
	if r.Cached {
		return new(0.0)
	}
	for _, name := range r.PricedAs() {
		if usd, ok := x.price(r.Provider, name, r.Usage); ok {
			return &usd
		}
	}
	return nil
}

// bound aborts the call that begins now when the time of the run is over. The plan made then ends the run. The
// returned function ends that.
func (x *execution) bound(abort context.CancelCauseFunc) (end func()) {
	at, _, ok := x.state.Ends()
	if !ok {
		return func() {}
	}
	timer := time.AfterFunc(at.Sub(x.now()), func() { abort(errHeed) })
	return func() { timer.Stop() }
}
