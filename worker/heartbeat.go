package worker

import (
	"context"
	"errors"
	"sync"
	"time"
)

// beaters is how many tickets a heartbeat renews together.
const beaters = 64

// heartbeat keeps what is in hand from being given to other workers, as long as it is ours.
func (w *Worker) heartbeat(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		w.quiet()
		holds := w.held.all()
		next := make(chan *hold)
		var wg sync.WaitGroup
		for range min(beaters, len(holds)) {
			wg.Go(func() {
				for o := range next {
					w.beat(ctx, o, every)
				}
			})
		}
		for _, o := range holds {
			next <- o
		}
		close(next)
		wg.Wait()
	}
}

// beat renews a ticket and looks at its log. A ticket that may have been given to another worker is not renewed: its run is
// left alone until that worker hands it over, or owns it.
func (w *Worker) beat(ctx context.Context, o *hold, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	d := w.held.newest(o)
	var renewed error
	if !d.Lapsed() {
		renewed = d.Renew(ctx)
	}
	ours, err := w.cfg.Runner.Owns(ctx, o.ticket.Run) // it tells the run of a cancel, and of another's claim
	if ours && err == nil {
		w.held.prove(o, d)
	}
	if err := errors.Join(renewed, err); err != nil {
		w.logBeat(ctx, o, err)
	}
}

func (w *Worker) logBeat(ctx context.Context, o *hold, err error) {
	w.cfg.Log.DebugContext(ctx, "heartbeat", "tenant", o.ticket.Run.Tenant, "run", o.ticket.Run.Run, "err", err)
}
