package worker

import (
	"context"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/worker/runner"
)

// held are the tickets in hand. When a message comes again although its run is worked here (a heartbeat was late),
// the run goes on and the newer delivery takes the place of the older one.
type held struct {
	mu    sync.Mutex
	bySeq map[uint64]*hold // by the message's sequence in TASKS
}

type hold struct {
	ticket   *runner.Ticket
	delivery *bus.Delivery // guarded by held.mu
}

func newHeld() *held { return &held{bySeq: map[uint64]*hold{}} }

// add books a ticket; mine is false when it is in hand already.
func (h *held) add(t *runner.Ticket, d *bus.Delivery) (_ *hold, mine bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if old := h.bySeq[t.Seq]; old != nil {
		old.delivery = d
		return nil, false
	}
	n := &hold{t, d}
	h.bySeq[t.Seq] = n
	return n, true
}

// remove ends a hold and returns its newest delivery.
func (h *held) remove(o *hold) *bus.Delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.bySeq, o.ticket.Seq)
	return o.delivery
}

func (h *held) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.bySeq)
}

func (h *held) all() []*hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]*hold, 0, len(h.bySeq))
	for _, o := range h.bySeq {
		out = append(out, o)
	}
	return out
}

// lanes counts what is in hand of each lane.
func (h *held) lanes() map[messages.Lane]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := map[messages.Lane]int{}
	for _, o := range h.bySeq {
		if l, ok := messages.LaneOf(o.ticket.Priority, o.ticket.Run.Tenant); ok {
			n[l]++
		}
	}
	return n
}

// lookers is how many logs a heartbeat looks at together.
const lookers = 16

// heartbeat keeps what is in hand from being delivered to others, as long as it is ours: the look at the log comes
// first, so that a worker that was cut off for too long touches nothing of its successor's.
func (w *Worker) heartbeat(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		holds := w.held.all()
		next := make(chan *hold)
		var wg sync.WaitGroup
		for range min(lookers, len(holds)) {
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

func (w *Worker) beat(ctx context.Context, o *hold, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ours, err := w.cfg.Runner.Owns(ctx, o.ticket.Run)
	if err != nil || !ours {
		return // unreadable: the next beat may still come in time
	}
	w.held.mu.Lock()
	d := o.delivery
	w.held.mu.Unlock()
	if err := d.Working(); err != nil {
		w.cfg.Log.DebugContext(ctx, "heartbeat", "tenant", o.ticket.Run.Tenant, "task_id", o.ticket.Run.Run, "err", err)
	}
}
