package taskqueue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
)

// Lanes are all lanes that the queue has, of each partition, in no order. Answered by the servers that lead.
func (tq *Queue) Lanes(ctx context.Context) ([]bus.LaneState, error) { return tq.bus.Lanes(ctx) }

// whole is a lane as people know it: that of all partitions together.
type whole struct {
	bus.LaneState // sums

	parts []bus.LaneState
}

// together makes one lane of those that differ only in their partition.
func together(parts []bus.LaneState) []whole {
	var all []whole
	at := map[queue.Lane]int{}
	for _, s := range parts {
		l := s.Lane.In(0)
		i, ok := at[l]
		if !ok {
			i = len(all)
			at[l], all = i, append(all, whole{LaneState: bus.LaneState{Lane: l, Active: s.Active}})
		}
		w := &all[i]
		w.Queued, w.InFlight, w.parts = w.Queued+s.Queued, w.InFlight+s.InFlight, append(w.parts, s)
		if s.Active.After(w.Active) {
			w.Active = s.Active
		}
	}
	return all
}

// oldest is when the first message was stored that a lane has not given to a worker yet; ok is false when there is none.
func (tq *Queue) oldest(ctx context.Context, w *whole) (at time.Time, ok bool, err error) {
	for _, s := range w.parts {
		if s.Queued == 0 {
			continue
		}
		m, found, err := tq.tasks().At(s.Lane.Partition).Get(ctx, bus.Lookup{Seq: s.Given + 1, Next: queuedIn(s.Lane)})
		if err != nil {
			return at, false, err
		}
		if found && (!ok || m.Time.Before(at)) {
			at, ok = m.Time, true
		}
	}
	return at, ok, nil
}

// LaneList is what people see of the lanes: wake-ups first, then by priority, the fullest first.
func (tq *Queue) LaneList(ctx context.Context, req control.LanesRequest) (*control.LaneList, error) {
	parts, err := tq.withUnmade(ctx)
	if err != nil {
		return nil, err
	}
	all := slices.DeleteFunc(together(parts), func(s whole) bool {
		return req.Tenant != "" && s.Lane.Tenant != req.Tenant || !req.All && s.Queued+s.InFlight == 0
	})
	order := []messages.Priority{queue.WakeLane().Priority, messages.PriorityHigh, messages.PriorityNormal, messages.PriorityLow}
	rank := func(p messages.Priority) int { return slices.Index(order, p) }
	slices.SortFunc(all, func(x, y whole) int {
		return cmp.Or(cmp.Compare(rank(x.Lane.Priority), rank(y.Lane.Priority)), cmp.Compare(y.Queued, x.Queued),
			cmp.Compare(y.InFlight, x.InFlight), cmp.Compare(x.Lane.Tenant, y.Lane.Tenant))
	})
	list := &control.LaneList{Lanes: []control.LaneStatus{}, More: len(all) > control.MaxLanes}
	for i := range all[:min(control.MaxLanes, len(all))] {
		s := &all[i]
		status := control.LaneStatus{Tenant: s.Lane.Tenant, Priority: s.Lane.Priority, Queued: s.Queued, InFlight: s.InFlight}
		if s.Queued > 0 {
			at, ok, err := tq.oldest(ctx, s)
			if err != nil {
				return nil, fmt.Errorf("look at lane %s: %w", s.Lane, err)
			}
			if ok {
				status.Oldest = &at
			}
		}
		list.Lanes = append(list.Lanes, status)
	}
	return list, nil
}
