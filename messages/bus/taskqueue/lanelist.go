package taskqueue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
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
	filter := s.Lane.Filter()
	if s.Lane.Wakes() {
		filter = "lanes.wake.>"
	}
	m, ok, err := tq.bus.Stream(bus.StreamTasks).Get(ctx, bus.Lookup{Seq: s.Given + 1, Next: filter})
	return m.Time, ok, err
}

// withUnmade adds what is queued and has no lane: workers make lanes, and the server removes those that no worker
// takes from, so without a worker a queue would look empty. The subjects are read only when there are more messages
// than the lanes have.
func (tq *Queue) withUnmade(ctx context.Context, lanes []bus.LaneState) ([]bus.LaneState, error) {
	const queued = "lanes.*.*.*.*"
	total, err := tq.bus.Stream(bus.StreamTasks).Count(ctx, queued)
	if err != nil {
		return nil, fmt.Errorf("count what is queued: %w", err)
	}
	made := map[queue.Lane]bool{}
	for _, s := range lanes {
		made[s.Lane] = true
		total -= s.Queued + s.InFlight
	}
	if total <= 0 {
		return lanes, nil
	}
	unmade := map[queue.Lane]int{}
	for subject, err := range tq.bus.Stream(bus.StreamTasks).Subjects(ctx, queued) {
		if err != nil {
			return nil, fmt.Errorf("list what is queued: %w", err)
		}
		t := strings.Split(subject, ".")
		if l, ok := queue.LaneOf(messages.Priority(t[1]), t[3]); ok && !made[l] {
			unmade[l]++
		}
	}
	for l, n := range unmade {
		lanes = append(lanes, bus.LaneState{Lane: l, Queued: n})
	}
	return lanes, nil
}

// LaneList is what people see of the lanes: wake-ups first, then by priority, the fullest first.
func (tq *Queue) LaneList(ctx context.Context, req control.LanesRequest) (*control.LaneList, error) {
	all, err := tq.bus.Lanes(ctx)
	if err != nil {
		return nil, err
	}
	if all, err = tq.withUnmade(ctx, all); err != nil {
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
