package worker_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/quotas"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/tools"
	"github.com/longshore-run/longshore/worker"
)

// Two tenants whose names have the same hash: the stream puts them under the same lane number.
const (
	busy  = "busy"
	quiet = "quiet7"
)

const gated = `
scenes:
  - match: go
    turns:
      - calls: [{name: gate, arguments: {}}]
      - text: done
`

// gate is a tool that notes whose runs have begun, in this order, and lets each one wait for its turn.
type gate struct {
	tools.Tool
	turns   chan struct{}
	arrived chan struct{}

	mu    sync.Mutex
	began []messages.Ref
	slow  func(messages.Ref) bool // which ones wait; nil: all
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{turns: make(chan struct{}), arrived: make(chan struct{}, 100_000)}
	spec := messages.ToolSpec{Name: "gate", Description: "Waits.", Effect: messages.EffectRead}
	tool, err := tools.Func(spec, func(ctx context.Context, call tools.Call, _ struct{}) (tools.Result, error) {
		g.mu.Lock()
		g.began = append(g.began, call.Run)
		g.mu.Unlock()
		g.arrived <- struct{}{}
		if g.slow == nil || g.slow(call.Run) {
			select {
			case <-g.turns:
			case <-ctx.Done():
				return tools.Result{}, ctx.Err()
			}
		}
		return tools.Text("ok"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	g.Tool = tool
	return g
}

// open lets n runs continue.
func (g *gate) open(t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case g.turns <- struct{}{}:
		case <-time.After(patience):
			t.Fatal("no task waits at the gate")
		}
	}
}

// await waits until n runs more have begun.
func (g *gate) await(t *testing.T, n int) {
	t.Helper()
	for range n {
		select {
		case <-g.arrived:
		case <-time.After(patience):
			t.Fatal("no run begins")
		}
	}
}

func (g *gate) order() []messages.Ref {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.began)
}

// tenants counts the runs that have begun from the n-th on.
func (g *gate) tenants(from int) map[string]int {
	n := map[string]int{}
	for _, r := range g.order()[from:] {
		n[r.Tenant]++
	}
	return n
}

func gatedAgent() messages.Definition {
	return messages.Definition{Name: "gated", Tools: []string{"gate"}}
}

// queue publishes tasks as a stranger does: without the client and without waiting for each.
func (h *house) queue(p messages.Priority, tenant string, n int) {
	h.t.Helper()
	js, err := jetstream.New(h.nc, jetstream.WithPublishAsyncMaxPending(1000))
	if err != nil {
		h.t.Fatal(err)
	}
	for range n {
		run := messages.Ref{Tenant: tenant, Run: messages.NewID(time.Now())}
		m := &nats.Msg{Subject: bustest.QueueAt(h.bus, run, run.TaskSubject(p)), Data: []byte(`{"input":"go","agent":"gated"}`)}
		if _, err := js.PublishMsgAsync(m, jetstream.WithStallWait(patience)); err != nil {
			h.t.Fatal(err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(patience):
		h.t.Fatal("tasks are not stored")
	}
}

// never is longer than any test: what is found then was found by hints.
const never = time.Hour

func TestSingleTaskBesideABacklogOfTheSameHash(t *testing.T) {
	h := open(t, 30*time.Second, gatedAgent())
	h.queue(messages.PriorityNormal, busy, 20_000)
	g := newGate(t)
	h.worker("w", script(t, gated), worker.Config{Slots: 4, Look: never, DrainTimeout: time.Millisecond}, g)
	g.await(t, 4)
	for range 3 {
		before := len(g.order())
		h.queue(messages.PriorityNormal, quiet, 1)
		for n := 0; g.tenants(before)[quiet] == 0; n++ {
			if n == 50 {
				t.Fatalf("the single task was not begun after %d others", len(g.order())-before)
			}
			g.open(t, 1)
			g.await(t, 1)
		}
		t.Logf("begun after %d others", len(g.order())-before-1)
	}
}

func TestWeights(t *testing.T) {
	h := open(t, 30*time.Second, gatedAgent())
	of := queue.QuotaRef{Kind: queue.QuotaTenant, Name: busy}
	if _, err := quotas.New(h.bus, h.logs()).PutQuota(t.Context(), of, queue.Quota{Weight: 3}, "test", nil); err != nil {
		t.Fatal(err)
	}
	h.queue(messages.PriorityNormal, busy, 200)
	h.queue(messages.PriorityNormal, quiet, 200)
	g := newGate(t)
	h.worker("w", script(t, gated), worker.Config{Slots: 4, DrainTimeout: time.Millisecond}, g)
	g.await(t, 4)
	g.open(t, 8) // by now weights are read
	g.await(t, 8)
	before := len(g.order())
	for range 40 {
		g.open(t, 1)
		g.await(t, 1)
	}
	if n := g.tenants(before); n[busy] < 26 || n[busy] > 34 {
		t.Errorf("got %v of 40, want 30 to 10", n)
	}
}

func TestLowPriorityIsNotStarved(t *testing.T) {
	h := open(t, 30*time.Second, gatedAgent())
	h.queue(messages.PriorityHigh, busy, 300)
	h.queue(messages.PriorityLow, quiet, 50)
	g := newGate(t)
	h.worker("w", script(t, gated), worker.Config{Slots: 4, DrainTimeout: time.Millisecond}, g)
	g.await(t, 4)
	for range 80 {
		g.open(t, 1)
		g.await(t, 1)
	}
	if n := g.tenants(0); n[quiet] < 3 || n[quiet] > 12 {
		t.Errorf("got %v, want 16 to 1", n)
	}
}

// A paused tenant's tasks wait; its wake-ups and other tenants' tasks do not.
func TestPausedTenantWaits(t *testing.T) {
	h := open(t, 30*time.Second, gatedAgent())
	of := queue.QuotaRef{Kind: queue.QuotaTenant, Name: busy}
	if _, err := quotas.New(h.bus, h.logs()).PutQuota(t.Context(), of, queue.Quota{Paused: &queue.Pause{By: "test"}}, "test", nil); err != nil {
		t.Fatal(err)
	}
	g := newGate(t)
	h.worker("w", script(t, gated), worker.Config{Slots: 4, Look: 50 * time.Millisecond}, g)
	h.queue(messages.PriorityNormal, quiet, 1) // once this began the pause is known
	g.await(t, 1)
	h.queue(messages.PriorityHigh, busy, 1)
	h.queue(messages.PriorityNormal, quiet, 1)
	g.await(t, 1)
	if n := g.tenants(0); n[busy] != 0 || n[quiet] != 2 {
		t.Errorf("while %s is paused: %v", busy, n)
	}
	if err := quotas.New(h.bus, h.logs()).DeleteQuota(t.Context(), of, "test", nil); err != nil {
		t.Fatal(err)
	}
	g.await(t, 1)
	if n := g.tenants(0); n[busy] != 1 {
		t.Errorf("after the resume: %v", n)
	}
	g.open(t, 3)
}

// Without a single hint, and without a dispatcher: a look finds what is queued, for lanes that exist and for those that
// do not.
func TestTasksAreFoundWithoutHints(t *testing.T) {
	h := open(t, 30*time.Second, gatedAgent())
	js, err := jetstream.New(h.nc)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range h.bus.Partitions(bus.StreamTasks).Names() {
		s, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		config := s.CachedInfo().Config
		config.RePublish = nil
		if _, err := js.UpdateStream(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
	h.queue(messages.PriorityNormal, quiet, 1) // before there is a worker
	g := newGate(t)
	g.slow = func(messages.Ref) bool { return false }
	h.worker("w", script(t, gated), worker.Config{Slots: 4, Look: 50 * time.Millisecond}, g)
	g.await(t, 1)
	look := func() {
		t.Helper()
		if err := taskqueue.NewSweeps(h.bus).ScheduleLanes(t.Context(), time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if h.bus.Partitions(bus.StreamTasks).Divided() { // the lane exists in one of them
		look()
	}
	h.queue(messages.PriorityNormal, quiet, 2) // its lane exists
	g.await(t, 2)
	h.queue(messages.PriorityNormal, busy, 1) // no worker knows of the lane: the errand finds it
	look()
	g.await(t, 1)
}

// A raw publisher sends a task of an unknown tenant: the hint suffices.
func TestNewTenantNeedsNoSetup(t *testing.T) {
	h := open(t, 30*time.Second, gatedAgent())
	g := newGate(t)
	g.slow = func(messages.Ref) bool { return false }
	h.worker("w", script(t, gated), worker.Config{Slots: 4, Look: never}, g)
	h.queue(messages.PriorityNormal, quiet, 1)
	g.await(t, 1) // the worker listens
	for i, p := range []messages.Priority{messages.PriorityHigh, messages.PriorityNormal, messages.PriorityLow} {
		h.queue(p, fmt.Sprint("new-", i), 1)
		g.await(t, 1)
	}
}

func TestRemovedLaneHeals(t *testing.T) {
	h := open(t, 30*time.Second, gatedAgent())
	h.queue(messages.PriorityNormal, busy, 20)
	g := newGate(t)
	h.worker("w", script(t, gated), worker.Config{Slots: 2, Look: never}, g)
	g.await(t, 2)
	g.open(t, 2)
	g.await(t, 2) // nothing but what these two have is in hand
	js, err := jetstream.New(h.nc)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range h.bus.Partitions(bus.StreamTasks).Names() { // in some no worker has taken from the lane yet
		if err := js.DeleteConsumer(t.Context(), name, "lane_normal_"+busy); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			t.Fatal(err)
		}
	}
	for range 16 {
		g.open(t, 1)
		g.await(t, 1)
	}
	g.open(t, 2)
	h.empty()
}

// empty waits until every run has ended and nothing is left in the queue but schedules.
func (h *house) empty() {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	for {
		list, err := taskqueue.New(h.bus).LaneList(ctx, control.LanesRequest{})
		if err != nil {
			h.t.Fatal(err)
		}
		if len(list.Lanes) == 0 {
			return
		}
	}
}

// A task announced to a full worker goes to one with a slot.
func TestFullWorkerTellsOthers(t *testing.T) {
	h := open(t, 30*time.Second, gatedAgent())
	g := newGate(t)
	h.worker("full", script(t, gated), worker.Config{Slots: 1, Look: never, DrainTimeout: time.Millisecond}, g)
	h.queue(messages.PriorityNormal, busy, 1)
	g.await(t, 1) // it has no slot left
	free := newGate(t)
	h.worker("free", script(t, gated), worker.Config{Slots: 64, Look: never, DrainTimeout: time.Millisecond}, free)
	h.queue(messages.PriorityNormal, "first", 1)
	free.await(t, 1) // both listen, and half of the hints go to the full one
	for i := range 10 {
		h.queue(messages.PriorityNormal, fmt.Sprint("t", i), 1)
		free.await(t, 1)
	}
	if n := len(g.order()); n != 1 {
		t.Errorf("the full worker began %d runs", n)
	}
}

// A wake-up passes every task that is queued.
func TestWakeUpsPassABacklog(t *testing.T) {
	h := open(t, 30*time.Second, gatedAgent())
	g := newGate(t)
	h.worker("w", script(t, gated), worker.Config{Slots: 1, Look: never, DrainTimeout: time.Millisecond}, g)
	h.queue(messages.PriorityHigh, busy, 1000)
	g.await(t, 1)
	js, err := jetstream.New(h.nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	const subject = "tasks.wake.default.bad" // its dead letter shows that it was worked
	bad := messages.Ref{Tenant: messages.DefaultTenant, Run: "bad"}
	if _, err := js.Publish(ctx, bustest.QueueAt(h.bus, bad, subject), []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		h.letter(ctx, js, subject)
	}()
	for waits := true; waits; { // its hint may come some moments after the slot was taken again
		select {
		case g.turns <- struct{}{}:
		case <-worked:
			waits = false
		}
	}
	const most = 500 // of a thousand, for it takes some more until the letter is seen
	if n := len(g.order()) - 1; n > most {
		t.Errorf("%d tasks went before the wake-up, want at most %d", n, most)
	}
}

// A worker dies with tasks of several lanes in hand: others get them when the ack wait is over, each once more.
func TestRedeliveryPerLane(t *testing.T) {
	const ackWait = 500 * time.Millisecond
	h := open(t, ackWait, gatedAgent())
	tasks, err := taskqueue.New(h.bus).Tasks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{}
	for i, p := range []messages.Priority{messages.PriorityHigh, messages.PriorityNormal, messages.PriorityLow} {
		tenant := fmt.Sprint("t", i)
		want[tenant] = 2
		h.queue(p, tenant, 2)
		for in := range h.bus.Partitions(bus.StreamTasks).Number() {
			for _, err := range tasks.Take(t.Context(), queue.Lane{Priority: p, Tenant: tenant, Partition: in}, 2) { // and dies
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	g := newGate(t)
	g.slow = func(messages.Ref) bool { return false }
	h.worker("w", script(t, gated), worker.Config{Slots: 16}, g)
	g.await(t, 6)
	h.empty()
	if n := g.tenants(0); !maps.Equal(n, want) {
		t.Errorf("got %v, want %v", n, want)
	}
}

// The server sends a hint slightly before it delivers the message: a worker that is too fast looks again.
func TestEveryHintIsFound(t *testing.T) {
	h := open(t, 30*time.Second)
	h.worker("w", script(t, hello), worker.Config{Look: never})
	for range 50 {
		h.result(h.submit(messages.Task{Input: messages.TextInput("Say hello.")}))
	}
}
