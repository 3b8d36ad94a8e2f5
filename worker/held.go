package worker

import (
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/worker/runner"
)

// held are the tickets in hand. When a message comes again although its run is worked here (a heartbeat was late),
// the run continues and the newer delivery takes the place of the older one.
type held struct {
	mu    sync.Mutex
	holds map[ticketOf]*hold
}

// ticketOf names a ticket: the sequence is that in the partition of TASKS which has the run.
type ticketOf struct {
	run messages.Ref
	seq uint64
}

type hold struct {
	ticket   *runner.Ticket
	delivery *taskqueue.Delivery // guarded by held.mu
	// The delivery came while the run was worked, and the log was not looked at since: before that another worker may have
	// claimed the run. Guarded by held.mu.
	unproven bool
}

func newHeld() *held { return &held{holds: map[ticketOf]*hold{}} }

// add books a ticket; mine is false when it is in hand already.
func (h *held) add(t *runner.Ticket, d *taskqueue.Delivery) (_ *hold, mine bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if old := h.holds[ticketOf{t.Run, t.Seq}]; old != nil {
		old.delivery, old.unproven = d, true
		return nil, false
	}
	n := &hold{ticket: t, delivery: d}
	h.holds[ticketOf{t.Run, t.Seq}] = n
	return n, true
}

// replace makes a newer delivery that of its hold; false: there is none.
func (h *held) replace(run messages.Ref, d *taskqueue.Delivery) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := h.holds[ticketOf{run, d.Seq}]
	if o == nil {
		return false
	}
	o.delivery, o.unproven = d, true
	return true
}

// remove ends a hold and returns its newest delivery.
func (h *held) remove(o *hold) *taskqueue.Delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.holds, ticketOf{o.ticket.Run, o.ticket.Seq})
	return o.delivery
}

func (h *held) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.holds)
}

func (h *held) all() []*hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]*hold, 0, len(h.holds))
	for _, o := range h.holds {
		out = append(out, o)
	}
	return out
}

// lanes counts what is in hand of each lane, and that no other worker can be given.
func (h *held) lanes() map[queue.Lane]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := map[queue.Lane]int{}
	for _, o := range h.holds {
		if l, ok := queue.LaneOf(o.ticket.Priority, o.ticket.Run.Tenant); ok && !o.delivery.Lapsed() {
			n[l.In(o.delivery.Partition())]++
		}
	}
	return n
}

// of is the hold of a ticket; nil: it is not in hand.
func (h *held) of(run messages.Ref, ticket uint64) *hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.holds[ticketOf{run, ticket}]
}

// newest is the delivery that stands for a hold.
func (h *held) newest(o *hold) *taskqueue.Delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	return o.delivery
}

// lease is for how much longer no other worker can own the run; 0 when that is not known.
func (h *held) lease(o *hold) time.Duration {
	h.mu.Lock()
	d, unproven := o.delivery, o.unproven
	h.mu.Unlock()
	if unproven {
		return 0
	}
	return d.Lease()
}

// prove notes that the log has shown, since d came, that the run is ours.
func (h *held) prove(o *hold, d *taskqueue.Delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if o.delivery == d {
		o.unproven = false
	}
}
