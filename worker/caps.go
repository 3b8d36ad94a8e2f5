package worker

import "context"

// keepCaps follows the caps and pauses until ctx ends, and wakes those that may go on when there are more places.
func (w *Worker) keepCaps(ctx context.Context) {
	if err := w.cfg.Keeper.LookAtAll(ctx); err != nil && ctx.Err() == nil { // what changed while no worker was there
		w.cfg.Log.WarnContext(ctx, "give free places", "err", err)
	}
	w.cfg.Caps.Run(ctx, w.cfg.Keeper.LookAt)
}
