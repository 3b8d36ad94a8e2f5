package worker

import (
	"context"
	"os"

	"github.com/longshore-run/longshore/messages"
)

// maxBegun bounds the tenants that a worker names.
const maxBegun = 1024

// register answers who asks for workers, until ctx ends. That nobody can ask is no reason not to work.
func (w *Worker) register(ctx context.Context, drain context.CancelFunc) {
	err := w.cfg.Bus.ServeWorker(ctx, w.id, w.status, func() {
		w.cfg.Log.InfoContext(ctx, "asked to drain")
		w.draining.Store(true)
		drain()
	})
	if err != nil && ctx.Err() == nil {
		w.cfg.Log.WarnContext(ctx, "the worker is not listed", "err", err)
	}
}

// status is what the worker says of itself.
func (w *Worker) status() messages.WorkerStatus {
	host, _ := os.Hostname() // empty when it has none
	return messages.WorkerStatus{
		Name: w.cfg.Name, ID: w.id, Host: host, Version: w.cfg.Version, Since: w.since,
		Slots: w.cfg.Slots, Busy: w.slots.busy(), Held: w.held.len(), Draining: w.draining.Load(), Begun: w.held.begun(),
	}
}

// begun counts the tasks in hand by tenant. Wake-ups are not among them.
func (h *held) begun() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]int{}
	for _, o := range h.bySeq {
		if tenant := o.ticket.Run.Tenant; o.ticket.After == 0 && (len(out) < maxBegun || out[tenant] > 0) {
			out[tenant]++
		}
	}
	return out
}
