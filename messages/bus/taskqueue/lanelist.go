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

// Lanes are all lanes that the stream has, in no order. Answered by the server that leads.
func (tq *Queue) Lanes(ctx context.Context) ([]bus.LaneState, error) { return tq.bus.Lanes(ctx) }

// Oldest is when the first message was stored that a lane has not given to a worker yet; ok is false when there is none.
func (tq *Queue) Oldest(ctx context.Context, s bus.LaneState) (at time.Time, ok bool, err error) {
	m, ok, err := tq.bus.Stream(bus.StreamTasks).Get(ctx, bus.Lookup{Seq: s.Given + 1, Next: queuedIn(s.Lane)})
	return m.Time, ok, err
}

// LaneList is what people see of the lanes: wake-ups first, then by priority, the fullest first.
func (tq *Queue) LaneList(ctx context.Context, req control.LanesRequest) (*control.LaneList, error) {
	all, err := tq.withUnmade(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(s bus.LaneState) bool {
		return req.Tenant != "" && s.Lane.Tenant != req.Tenant || !req.All && s.Queued+s.InFlight == 0
	})
	order := []messages.Priority{queue.WakeLane().Priority, messages.PriorityHigh, messages.PriorityNormal, messages.PriorityLow}
	rank := func(p messages.Priority) int { return slices.Index(order, p) }
	slices.SortFunc(all, func(x, y bus.LaneState) int {
		return cmp.Or(cmp.Compare(rank(x.Lane.Priority), rank(y.Lane.Priority)), cmp.Compare(y.Queued, x.Queued),
			cmp.Compare(y.InFlight, x.InFlight), cmp.Compare(x.Lane.Tenant, y.Lane.Tenant))
	})
	list := &control.LaneList{Lanes: []control.LaneStatus{}, More: len(all) > control.MaxLanes}
	for _, s := range all[:min(control.MaxLanes, len(all))] {
		status := control.LaneStatus{Tenant: s.Lane.Tenant, Priority: s.Lane.Priority, Queued: s.Queued, InFlight: s.InFlight}
		if s.Queued > 0 {
			at, ok, err := tq.Oldest(ctx, s)
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
