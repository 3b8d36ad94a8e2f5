package taskqueue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
)

// A lane for each of many tenants: each one's single task is given once, and lists go over their pages.
func TestManyLanes(t *testing.T) {
	t.Parallel()
	const tenants = 300 // a page of the server's list has 256
	b, _ := bustest.OpenNew(t)
	for i := range tenants {
		if _, err := taskqueue.New(b).Submit(bustest.Context(t), bustest.NewTask(messages.Ref{Tenant: fmt.Sprintf("t%d", i), Run: "one"}), true); err != nil {
			t.Fatal(err)
		}
	}
	for made := 0; made < tenants; { // each call makes some
		lanes, unroutable, err := taskqueue.New(b).RepairLanes(bustest.Context(t), time.Minute)
		if err != nil || len(lanes) == 0 || len(unroutable) > 0 {
			t.Fatalf("with %d lanes: made %d, %d unroutable, %v", made, len(lanes), len(unroutable), err)
		}
		made += len(lanes)
	}
	lanes, err := b.Lanes(bustest.Context(t))
	if err != nil || len(lanes) != tenants+b.Partitions(bus.StreamTasks).Number() { // and that of wake-ups
		t.Fatalf("%d lanes, %v", len(lanes), err)
	}
	list, err := taskqueue.New(b).LaneList(bustest.Context(t), control.LanesRequest{})
	if err != nil || len(list.Lanes) != tenants || list.More {
		t.Errorf("a list of %d, %v", len(list.Lanes), err)
	}
	tasks, given := bustest.Tasks(t, b), map[string]bool{}
	for _, l := range lanes {
		var got []*taskqueue.Delivery
		for d := range bustest.Values(t, tasks.Take(bustest.Context(t), l.Lane, 5)) {
			got = append(got, d)
		}
		if l.Lane.Wakes() {
			continue
		}
		if len(got) != 1 || l.Queued != 1 || given[got[0].Subject] {
			t.Fatalf("lane %s has %d, gave %d", l.Lane, l.Queued, len(got))
		}
		given[got[0].Subject] = true
		if err := got[0].Ack(bustest.Context(t)); err != nil {
			t.Fatal(err)
		}
	}
	if len(given) != tenants {
		t.Errorf("%d were given", len(given))
	}
	list, err = taskqueue.New(b).LaneList(bustest.Context(t), control.LanesRequest{})
	if err != nil || len(list.Lanes) != 0 {
		t.Errorf("then a list of %d, %v", len(list.Lanes), err)
	}
}
