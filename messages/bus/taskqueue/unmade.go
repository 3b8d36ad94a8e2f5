package taskqueue

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/queue"
)

const (
	allQueued = "lanes.*.*.*.*"
	// How often what is queued is listed at most, while workers take from lanes: what they take between two questions looks like
	// tasks without a lane, and they make the lanes that are missing.
	listQueuedEvery = time.Minute
	// Lanes that are counted one by one. With more, what is queued is listed each time.
	maxUnmade = 200
)

// unmade remembers which lanes had tasks and were not made, so that they are counted the next time and what is queued is not listed again.
type unmade struct {
	mu     sync.Mutex
	lanes  []queue.Lane
	listed time.Time // zero: never
}

func (u *unmade) recall() ([]queue.Lane, time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.lanes, u.listed
}

// remember takes over a list of lanes.
func (u *unmade) remember(lanes []queue.Lane) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.lanes, u.listed = lanes[:min(len(lanes), maxUnmade)], time.Now()
}

// queuedIn is the subjects of a lane.
func queuedIn(l queue.Lane) string {
	if l.Wakes() {
		return "lanes.wake.>"
	}
	return l.Filter()
}

// withUnmade are all lanes, also those that are queued for and not made: workers make lanes, and the server removes those that no worker
// takes from, so without a worker a queue would look empty. Its cost follows the lanes, but when there are tasks of a lane that
// was not known: then all subjects are listed.
func (tq *Queue) withUnmade(ctx context.Context) ([]bus.LaneState, error) {
	left, err := tq.tasks().Count(ctx, allQueued) // before the lanes: what comes in between is of one
	if err != nil {
		return nil, fmt.Errorf("count what is queued: %w", err)
	}
	lanes, err := tq.bus.Lanes(ctx)
	if err != nil {
		return nil, err
	}
	made, worked := map[queue.Lane]bool{}, false
	for _, s := range lanes {
		made[s.Lane] = true
		worked = worked || !s.Lane.Wakes() // that of wake-ups is there without a worker, too
		left -= s.Queued + s.InFlight
	}
	known := lanes
	remembered, listed := tq.unmade.recall()
	for _, l := range remembered {
		if left <= 0 {
			break
		}
		if made[l] {
			continue
		}
		n, err := tq.tasks().At(l.Partition).Count(ctx, queuedIn(l))
		if err != nil {
			return nil, fmt.Errorf("count what is queued in lane %s: %w", l, err)
		}
		if n > 0 {
			left -= n
			known = append(known, bus.LaneState{Lane: l, Queued: n})
		}
	}
	if left <= 0 || worked && time.Since(listed) < listQueuedEvery {
		return known, nil
	}
	found := map[queue.Lane]int{}
	for at, err := range tq.queuedSubjects(ctx) {
		if err != nil {
			return nil, fmt.Errorf("list what is queued: %w", err)
		}
		if l, ok := at.lane(); ok && !made[l] {
			found[l]++
		}
	}
	for l, n := range found {
		lanes = append(lanes, bus.LaneState{Lane: l, Queued: n})
	}
	tq.unmade.remember(slices.Collect(maps.Keys(found)))
	return lanes, nil
}
