package fleet

import (
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/quotas"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/semaphores"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/runlog"
)

// capped is the controller of a worker, whose runs take permits of semaphores, and the caps that it goes by. The guard tells the
// models which providers are paused.
func capped(b *bus.Bus, logs *runlogs.Store, granted *quotas.Quotas, clock *bus.Clock, g *guard) (*runlog.Controller, *quotas.Caps) {
	k, caps := controller(b, logs, granted, clock), granted.NewCaps(0)
	k.Semaphores, k.Caps = semaphores.New(b), caps
	if g != nil {
		g.caps.Store(caps)
	}
	return k, caps
}

// paused reports whether an operator paused a provider.
func (g *guard) paused(provider string) bool {
	if g == nil {
		return false
	}
	caps := g.caps.Load()
	return caps != nil && caps.Cap(queue.PauseSemaphore(queue.QuotaRef{Kind: queue.QuotaProvider, Name: provider})) == 0
}
