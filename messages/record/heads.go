package record

import (
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
)

// What records change in the head of their entry.

func (r *Started) head(h *Head) {
	if r.ForkedFrom != nil { // a wake-up that names this entry may claim it
		h.Phase = PhaseReady
	}
	h.Shown = r.Shown
	if p := r.Parent; p != nil { // and so may its ticket
		h.Phase, h.Parent, h.Needs = PhaseReady, &Kin{p.Run, p.Number, p.Index}, p.Needs
	}
	h.Session, h.Webhook = r.Task.Session, r.Task.Webhook != nil
	if t, err := messages.ParseTraceparent(r.Task.Traceparent); err == nil {
		h.Trace = t.String()
	}
}

func (r *Claimed) head(h *Head) {
	h.Phase, h.Claim, h.Ticket, h.Delivery, h.ClaimSeq = PhaseActive, r.Claim, r.Ticket, r.Delivery, 0
	h.Waits, h.Needs, h.Alone = "", nil, false
	h.Attempt++
}

func (r *Lined) head(h *Head) {
	for _, l := range r.Semaphores {
		if !slices.Contains(h.Semaphores, l) {
			h.Semaphores = append(slices.Clip(h.Semaphores), l)
		}
	}
}

func (r *Released) head(h *Head) {
	if !r.Spent {
		h.Attempt = max(0, h.Attempt-1)
	}
}

func (r *Lost) head(h *Head) {
	if h.Phase == PhaseActive && h.Ticket == r.Ticket {
		h.Phase = PhaseReady
	}
}

func (p *Parked) head(h *Head) {
	h.Phase, h.ParkSeq = PhaseParked, 0
	if p.Reason == queue.ParkWorker || p.Reason == queue.ParkRate { // no progress, and no attempt either
		h.Attempt = max(0, h.Attempt-1)
	} else {
		h.Attempt, h.Alone = 0, false
	}
	h.Waits, h.Needs = p.Reason, p.Needs
}

func (r *Answered) head(h *Head) {
	if h.Waits != queue.ParkChildren { // no person speaks for them
		h.satisfy(r.Park)
	}
}

func (r *Finished) head(h *Head) {
	h.Phase, h.Waits, h.Needs, h.Status = PhaseFinished, "", nil, r.Result.Status
}

func (d *Delegated) head(h *Head) {
	if h.Children != nil && h.Children.Open() > 0 {
		h.Earlier = append(slices.Clone(h.Earlier), *h.Children)
	}
	h.Children = new(d.Awaits())
}

func (h *Head) placeChildren(seq uint64) {
	if h.Children == nil {
		return
	}
	c := *h.Children // others may hold the head before it was placed
	c.Seq = seq
	h.Children = &c
}

func (r *ChildEnded) head(h *Head) {
	if h.ChildTold(r.Number, r.Index) {
		return
	}
	h.childEnded(r)
	if h.Phase == PhaseParked && h.Waits == queue.ParkChildren && h.Children.Enough() {
		h.Phase = PhaseReady
	}
}

func (r *Withdrawn) head(h *Head) {
	if h.Parent != nil && h.Parent.Run == r.Parent {
		h.cancel()
	}
}

// What records would be that any process may append.

func settledIf(done bool) Standing {
	if done {
		return Settled
	}
	return Counts
}

func (*CancelRequested) stands(h *Head, _ time.Time) Standing { return settledIf(h.Cancel) }

func (r *Withdrawn) stands(h *Head, _ time.Time) Standing {
	return settledIf(h.Cancel || h.Parent == nil || h.Parent.Run != r.Parent)
}

func (r *ChildEnded) stands(h *Head, _ time.Time) Standing {
	return settledIf(h.ChildTold(r.Number, r.Index))
}

func (r *Answered) stands(h *Head, _ time.Time) Standing {
	if h.ParkSeq != r.Park || h.Phase == PhaseActive || h.Waits == queue.ParkChildren {
		return NotWaiting
	}
	return settledIf(h.Phase == PhaseReady)
}

func (d *Decided) stands(h *Head, now time.Time) Standing {
	switch {
	case h.ParkSeq != d.Park || h.Phase == PhaseActive:
		return NotWaiting
	case h.Phase == PhaseReady:
		return Settled
	case d.Late(now):
		return Late
	default:
		return Counts
	}
}
