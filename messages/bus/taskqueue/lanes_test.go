package taskqueue_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
)

// Streams of before there were lanes are changed in place, and what is queued in them is found.
func TestSetupBringsLanesToAnOldStream(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	js := bustest.NewJetStream(t, nc)
	s, err := js.Stream(bustest.Context(t), bus.StreamTasks)
	if err != nil {
		t.Fatal(err)
	}
	stream := s.CachedInfo().Config
	stream.RePublish, stream.MaxConsumers = nil, 1024
	if _, err := js.UpdateStream(bustest.Context(t), stream); err != nil {
		t.Fatal(err)
	}
	c, err := js.Consumer(bustest.Context(t), bus.StreamTasks, bus.ConsumerWorkers)
	if err != nil {
		t.Fatal(err)
	}
	consumer := c.CachedInfo().Config
	consumer.FilterSubjects = []string{"lanes.>", "tasks.>"}
	if _, err := js.UpdateConsumer(bustest.Context(t), bus.StreamTasks, consumer); err != nil {
		t.Fatal(err)
	}
	submitMany(t, b, 0, 3)
	if err := bus.Setup(bustest.Context(t), nc, bus.Streams{AckWait: time.Minute}); err != nil {
		t.Fatal(err)
	}
	bustest.Pull(t, b, 3)
	if err := bus.Setup(bustest.Context(t), nc, bus.Streams{AckWait: 2 * time.Minute}); err != nil { // lanes get it too
		t.Fatal(err)
	}
	lane, err := js.Consumer(bustest.Context(t), bus.StreamTasks, "lane_normal_acme")
	if err != nil || lane.CachedInfo().Config.AckWait != 2*time.Minute {
		t.Errorf("got %+v, %v", lane, err)
	}
}

func TestLaneList(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	for _, p := range []messages.Priority{messages.PriorityLow, messages.PriorityHigh, messages.PriorityNormal} {
		for _, tenant := range []string{"acme", "other_one"} {
			task := bustest.NewTask(messages.Ref{Tenant: tenant, Run: "r-" + string(p)})
			task.Priority = p
			if _, err := taskqueue.New(b).Submit(bustest.Context(t), task, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	submitMany(t, b, 0, 1)
	if _, _, err := taskqueue.New(b).RepairLanes(bustest.Context(t), time.Minute); err != nil {
		t.Fatal(err)
	}
	for range bustest.Values(t, bustest.Tasks(t, b).Take(bustest.Context(t), bustest.LaneOf(b, messages.Ref{Tenant: "acme", Run: "r-high"}, messages.PriorityHigh), 1)) {
		t.Log("one is in flight")
	}
	list, err := taskqueue.New(b).LaneList(bustest.Context(t), control.LanesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	want := []control.LaneStatus{
		{Tenant: "other_one", Priority: "high", Queued: 1},
		{Tenant: "acme", Priority: "high", InFlight: 1},
		{Tenant: "acme", Priority: "normal", Queued: 2},
		{Tenant: "other_one", Priority: "normal", Queued: 1},
		{Tenant: "acme", Priority: "low", Queued: 1},
		{Tenant: "other_one", Priority: "low", Queued: 1},
	}
	if diff := cmp.Diff(want, list.Lanes, cmpopts.IgnoreFields(control.LaneStatus{}, "Oldest")); diff != "" {
		t.Error(diff)
	}
	for _, l := range list.Lanes {
		if (l.Oldest != nil) != (l.Queued > 0) {
			t.Errorf("oldest of %+v", l)
		}
	}
	if list, err = taskqueue.New(b).LaneList(bustest.Context(t), control.LanesRequest{Tenant: "acme", All: true}); err != nil || len(list.Lanes) != 3 {
		t.Errorf("of one tenant: %+v, %v", list, err)
	}
}

// Without a worker there are no lanes, but queued tasks are shown all the same: fleets are scaled by them.
func TestLaneListWithoutLanes(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	for _, run := range []string{"r1", "r2"} {
		if _, err := taskqueue.New(b).Submit(bustest.Context(t), bustest.NewTask(messages.Ref{Tenant: "acme", Run: run}), true); err != nil {
			t.Fatal(err)
		}
	}
	list, err := taskqueue.New(b).LaneList(bustest.Context(t), control.LanesRequest{})
	if err != nil || len(list.Lanes) != 1 || list.Lanes[0].Tenant != "acme" || list.Lanes[0].Queued != 2 || list.Lanes[0].Oldest == nil {
		t.Errorf("got %+v, %v", list, err)
	}
	if list, err = taskqueue.New(b).LaneList(bustest.Context(t), control.LanesRequest{Tenant: "other"}); err != nil || len(list.Lanes) != 0 {
		t.Errorf("of a tenant that has none: %+v, %v", list, err)
	}
	if all, err := b.Lanes(bustest.Context(t)); err != nil || len(all) != b.Partitions(bus.StreamTasks).Number() {
		t.Errorf("a look made lanes: %+v, %v", all, err)
	}
}

// What is queued without a worker is listed once, and then counted, until there are tasks of a tenant that is new.
func TestLaneListListsOnce(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	tq := taskqueue.New(b)
	listings, err := nc.SubscribeSync("$JS.API.STREAM.INFO." + bus.StreamTasks)
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range []struct {
		run      messages.Ref
		want     map[string]int
		listings int
	}{
		{messages.Ref{Tenant: "acme", Run: "r1"}, map[string]int{"acme": 1}, 1},
		{messages.Ref{Tenant: "acme", Run: "r2"}, map[string]int{"acme": 2}, 1},
		{messages.Ref{Tenant: "harbour", Run: "r1"}, map[string]int{"acme": 2, "harbour": 1}, 2},
		{messages.Ref{Tenant: "harbour", Run: "r2"}, map[string]int{"acme": 2, "harbour": 2}, 2},
	} {
		if _, err := tq.Submit(bustest.Context(t), bustest.NewTask(step.run), true); err != nil {
			t.Fatal(err)
		}
		list, err := tq.LaneList(bustest.Context(t), control.LanesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, l := range list.Lanes {
			got[l.Tenant] = l.Queued
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("after task %d: %s", i, diff)
		}
		if n, _, err := listings.Pending(); err != nil || n != step.listings {
			t.Errorf("after task %d the subjects were listed %d times, want %d; %v", i, n, step.listings, err)
		}
	}
}
