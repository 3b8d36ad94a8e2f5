package worker

import (
	"context"
	"sync"
)

// keepCaps follows the caps and pauses until ctx ends, and wakes runs that may resume when there are more permits.
func (w *Worker) keepCaps(ctx context.Context) {
	var first sync.WaitGroup
	defer first.Wait()
	first.Go(func() { // what changed while no worker was there; it may take long, and caps change meanwhile
		if err := w.cfg.Controller.LookAtAll(ctx); err != nil && ctx.Err() == nil {
			w.cfg.Log.WarnContext(ctx, "give free places", "err", err)
		}
	})
	w.cfg.Caps.Run(ctx, w.cfg.Controller.LookAt)
}
