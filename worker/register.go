package worker

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// maxBegun bounds the tenants that a worker names.
const maxBegun = 1024

// register answers requests for the list of workers until ctx ends. The worker works even if it cannot be asked.
func (w *Worker) register(ctx context.Context, drain context.CancelFunc) {
	err := w.cfg.Fleet.Serve(ctx, w.id, w.status, func() {
		w.cfg.Log.InfoContext(ctx, "asked to drain")
		w.draining.Store(true)
		drain()
	})
	if err != nil && ctx.Err() == nil {
		w.cfg.Log.WarnContext(ctx, "the worker is not listed", "err", err)
	}
}

// maxAnnounceEvery bounds how long others wait until they take a silent worker for lost.
const maxAnnounceEvery = 10 * time.Second

// announce tells the fleet at each round that this worker lives, until ctx ends, and then says goodbye.
func (w *Worker) announce(ctx context.Context) {
	ticker := time.NewTicker(w.announceEvery)
	defer ticker.Stop()
	var known evidence
	var convicted <-chan struct{} // never
	if w.cfg.Roster != nil {
		convicted = w.cfg.Roster.News()
	}
	for {
		w.say(ctx, w.status())
		if now := w.evidence(); now != known {
			known = now
			w.fetch.Reopen()
		}
		select {
		case <-ticker.C:
		case <-w.changed:
		case <-convicted:
		case <-ctx.Done():
			last := w.status()
			last.Gone = true
			w.say(ctx, last)
			return
		}
	}
}

// evidence is what runs in quarantine are judged by.
type evidence struct {
	lost      int
	convicted bool
}

func (w *Worker) evidence() (e evidence) {
	if w.cfg.Roster != nil {
		e.lost, e.convicted = w.cfg.Roster.Lost()
	}
	return e
}

// tried tells the fleet how many runs are on trial here, before the newest of them may claim. If this worker dies while there
// are several, none of them is proven to be the cause. A prime suspect that is alone is told too: trials that have just ended
// would speak for it.
func (w *Worker) tried(trials int) {
	w.say(w.running, w.describe(trials))
}

// say announces. Others that do not hear it hear the next one.
func (w *Worker) say(ctx context.Context, status messages.WorkerStatus) {
	status.Begun = nil // those who count ask
	if err := w.cfg.Fleet.Announce(status); err != nil {
		w.cfg.Log.DebugContext(ctx, "announce the worker", "err", err)
	}
}

// listen follows what others announce until ctx ends. It returns when it knows the workers of the last minutes.
func (w *Worker) listen(ctx context.Context, background *sync.WaitGroup) {
	if w.cfg.Roster == nil {
		return
	}
	known := make(chan struct{})
	background.Go(func() {
		if err := w.cfg.Roster.Run(ctx, func() { close(known) }); err != nil && ctx.Err() == nil {
			w.cfg.Log.WarnContext(ctx, "other workers are not known", "err", err)
		}
	})
	select {
	case <-known:
	case <-ctx.Done():
	}
}

// status is what the worker says of itself.
func (w *Worker) status() messages.WorkerStatus { return w.describe(w.fetch.Trials()) }

func (w *Worker) describe(trials int) messages.WorkerStatus {
	explained := 0
	if w.cfg.Roster != nil {
		explained = w.cfg.Roster.Explained()
	}
	host, _ := os.Hostname() // empty when it has none
	return messages.WorkerStatus{
		Name: w.cfg.Name, ID: w.id, Host: host, Version: w.cfg.Version, Since: w.since,
		Slots: w.cfg.Slots, Busy: w.fetch.Busy(), Held: w.held.len(), Draining: w.draining.Load(), Begun: w.held.begun(),
		Tools: w.cfg.Tools, Labels: w.cfg.Labels, Every: messages.Duration(w.announceEvery), Trials: trials, Explained: explained,
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

// signal leaves a signal in a buffered channel, unless one is there.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
