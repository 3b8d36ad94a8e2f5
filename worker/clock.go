package worker

import "context"

// compareClock compares the clocks before the first run.
func (w *Worker) compareClock(ctx context.Context) {
	if w.cfg.Clock == nil {
		return
	}
	if err := w.cfg.Clock.Measure(ctx); err != nil && ctx.Err() == nil {
		w.cfg.Log.WarnContext(ctx, "the clock is not compared with the NATS server's yet", "err", err)
	}
	w.applyClock()
}

// applyClock takes no new work while the clock of this machine is too far off. What is in hand continues: its deadlines go
// by the server's time.
func (w *Worker) applyClock() { w.fetch.Shut(w.cfg.Clock.Check() != nil) }
