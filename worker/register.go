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
	err := w.cfg.Fleet.Serve(ctx, w.id, w.answer, func() {
		w.cfg.Log.InfoContext(ctx, "asked to drain")
		w.draining.Store(true)
		drain()
	})
	if err != nil && ctx.Err() == nil {
		w.cfg.Log.WarnContext(ctx, "the worker is not listed", "err", err)
	}
}

// maxAnnounceEvery bounds the time after which others consider a silent worker lost.
const maxAnnounceEvery = 10 * time.Second

// announce publishes the worker's status periodically until ctx ends, and then its departure.
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

// evidence is the input for judging runs in quarantine.
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

// tried announces how many runs are on trial here, before the newest of them may claim. If this worker dies while there are several,
// none of them is proven to be the cause. That a prime suspect is alone is announced too: otherwise trials that have just ended
// would count in its favour.
func (w *Worker) tried(trials int) {
	w.say(w.running, w.describe(trials))
}

// say publishes the status once. It may be lost; the next one follows.
func (w *Worker) say(ctx context.Context, status messages.WorkerStatus) {
	status.Begun = nil // sent only in answers to requests
	if m := status.Memory; m != nil {
		m.Runs = nil // too
	}
	if err := w.cfg.Fleet.Announce(status); err != nil {
		w.cfg.Log.DebugContext(ctx, "announce the worker", "err", err)
	}
}

// listen follows the announcements of others until ctx ends. It returns once it knows the workers of the last minutes.
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

// answer is the status for those who ask for it.
func (w *Worker) answer(details bool) messages.WorkerStatus {
	s := w.status()
	if w.cfg.Models != nil {
		s.Models = w.cfg.Models()
	}
	if details && w.cfg.Specs != nil {
		s.Specs = w.cfg.Specs()
	}
	return s
}

// status returns the worker's own status.
func (w *Worker) status() messages.WorkerStatus { return w.describe(w.fetch.Trials()) }

func (w *Worker) describe(trials int) messages.WorkerStatus {
	explained := 0
	if w.cfg.Roster != nil {
		explained = w.cfg.Roster.Explained()
	}
	host, _ := os.Hostname() // empty if it is unknown
	return messages.WorkerStatus{
		Name: w.cfg.Name, ID: w.id, Host: host, Version: w.cfg.Version, Since: w.since,
		Slots: w.cfg.Slots, Busy: w.fetch.Busy(), Held: w.held.len(), Draining: w.draining.Load(), Begun: w.held.begun(),
		Tools: w.tools(), Labels: w.cfg.Labels, Every: messages.Duration(w.announceEvery), Trials: trials, Explained: explained, Memory: w.memory(),
	}
}

// memory is what the runs hold.
func (w *Worker) memory() *messages.WorkerMemory {
	if w.cfg.Memory == nil {
		return nil
	}
	s := w.cfg.Memory.Stats()
	return &messages.WorkerMemory{Limit: s.Limit, Used: s.Used, Waiting: s.Waiting, Runs: w.cfg.Memory.Waiting(messages.MaxWorkerRuns)}
}

// tools are those that are offered now.
func (w *Worker) tools() []string {
	if w.cfg.Tools == nil {
		return nil
	}
	return w.cfg.Tools()
}

// begun counts the tasks in hand by tenant, without wake-ups.
func (h *held) begun() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]int{}
	for _, o := range h.holds {
		if tenant := o.ticket.Run.Tenant; o.ticket.After == 0 && (len(out) < maxBegun || out[tenant] > 0) {
			out[tenant]++
		}
	}
	return out
}

// signal sends to a buffered channel without blocking.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
