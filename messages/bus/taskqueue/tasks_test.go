package taskqueue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/queue"
)

func submitMany(tb testing.TB, b *bus.Bus, from, to int) {
	tb.Helper()
	for i := from; i < to; i++ {
		if _, err := taskqueue.New(b).Submit(bustest.Context(tb), bustest.NewTask(messages.Ref{Tenant: "acme", Run: fmt.Sprintf("run-%d", i)}), false); err != nil {
			tb.Fatal(err)
		}
	}
}

func acmeLane() queue.Lane {
	return queue.Lane{Priority: messages.PriorityNormal, Tenant: "acme"}
}

func TestTakeEnds(t *testing.T) {
	t.Parallel()
	b, _ := bustest.OpenNew(t)
	tasks := bustest.Tasks(t, b)
	for _, l := range []queue.Lane{acmeLane(), queue.WakeLane(), acmeLane()} { // without the lane, and with it
		for d := range bustest.Values(t, tasks.Take(bustest.Context(t), l, 5)) {
			t.Errorf("%s: got %v", l, d)
		}
	}
	submitMany(t, b, 0, 3)
	awaitQueued(t, b, 3)
	n := 0
	for d := range bustest.Values(t, tasks.Take(bustest.Context(t), acmeLane(), 5)) {
		if n++; d.More != (n < 3) || d.Seq != uint64(n) {
			t.Errorf("delivery %d: %+v", n, d)
		}
	}
	if n != 3 {
		t.Errorf("got %d of 3", n)
	}
	ctx, cancel := context.WithCancelCause(bustest.Context(t))
	why := errors.New("enough")
	cancel(why)
	for d, err := range tasks.Take(ctx, acmeLane(), 5) {
		if d != nil || !errors.Is(err, why) {
			t.Errorf("got %v, %v", d, err)
		}
	}
}

// Thousands of tasks come in pages: what their runs are answered meanwhile would wait behind all of them.
func TestTakeAsksInPages(t *testing.T) {
	t.Parallel()
	b, nc := bustest.OpenNew(t)
	const there = 2*taskqueue.TakePage + 7
	tasks := bustest.Tasks(t, b)
	if err := tasks.Make(bustest.Context(t), acmeLane()); err != nil {
		t.Fatal(err)
	}
	submitMany(t, b, 0, there)
	awaitQueued(t, b, there)
	asked, err := nc.SubscribeSync("$JS.API.CONSUMER.MSG.NEXT.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	const first = taskqueue.TakePage + 3
	if got := len(slices.Collect(bustest.Values(t, tasks.Take(bustest.Context(t), acmeLane(), first)))); got != first {
		t.Errorf("got %d of %d", got, first)
	}
	rest := 0
	for d := range bustest.Values(t, tasks.Take(bustest.Context(t), acmeLane(), 10*taskqueue.TakePage)) {
		if rest++; d.Seq != uint64(first+rest) {
			t.Errorf("message %d is number %d of the rest", d.Seq, rest)
		}
	}
	if rest != there-first {
		t.Errorf("got %d of the %d that were left", rest, there-first)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	var sizes []int
	for m, err := asked.NextMsg(0); err == nil; m, err = asked.NextMsg(0) {
		var page struct {
			Batch int `json:"batch"`
		}
		if err := json.Unmarshal(m.Data, &page); err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, page.Batch)
	}
	if want := []int{taskqueue.TakePage, 3, taskqueue.TakePage, taskqueue.TakePage}; !slices.Equal(sizes, want) {
		t.Errorf("asked for %v messages, want %v", sizes, want)
	}
}

// awaitQueued waits until the lane sees so many messages: it sees them a moment after they are stored.
func awaitQueued(t *testing.T, b *bus.Bus, n int) {
	t.Helper()
	for ctx := bustest.Context(t); ; {
		lanes, err := b.Lanes(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(lanes, func(l bus.LaneState) bool { return l.Lane == acmeLane() && l.Queued == n }) {
			return
		}
	}
}

// Several takes of one lane share it; a caller that stops early keeps nothing from the others.
func TestTakesShareTheLane(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	submitMany(t, b, 0, 100)
	tasks := bustest.Tasks(t, b)
	for d := range bustest.Values(t, tasks.Take(bustest.Context(t), acmeLane(), 64)) {
		if err := d.Nak(bustest.Context(t), 0); err != nil {
			t.Fatal(err)
		}
		break
	}
	var mu sync.Mutex
	seen := map[uint64]bool{}
	var wg sync.WaitGroup
	ctx := bustest.Context(t)
	for range 4 {
		wg.Go(func() {
			for n := 0; n < 100 && ctx.Err() == nil; {
				for d := range bustest.Values(t, tasks.Take(ctx, acmeLane(), 25)) {
					if err := d.Ack(ctx); err != nil {
						t.Error(err)
					}
					mu.Lock()
					if seen[d.Seq] {
						t.Errorf("message %d came twice", d.Seq)
					}
					seen[d.Seq] = true
					mu.Unlock()
				}
				mu.Lock()
				n = len(seen)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(seen) != 100 {
		t.Errorf("got %d messages, want 100", len(seen))
	}
}

func TestNak(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	if err := bus.Setup(bustest.Context(t), nc, bus.Streams{AckWait: 5 * time.Minute}); err != nil { // longer than pull waits
		t.Fatal(err)
	}
	submitMany(t, b, 0, 1)
	d := bustest.Pull(t, b, 1)[0]
	start := time.Now()
	if err := d.Nak(bustest.Context(t), 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	d = bustest.Pull(t, b, 1)[0]
	if took := time.Since(start); d.Delivered != 2 || took < 90*time.Millisecond {
		t.Errorf("delivery %d after %v, want the second after 100 ms", d.Delivered, took)
	}
}

func TestWorking(t *testing.T) {
	const ackWait = time.Second
	b, nc := bustest.OpenNew(t)
	if err := bus.Setup(bustest.Context(t), nc, bus.Streams{AckWait: ackWait}); err != nil {
		t.Fatal(err)
	}
	submitMany(t, b, 0, 1)
	d := bustest.Pull(t, b, 1)[0]
	beat := time.NewTicker(100 * time.Millisecond)
	defer beat.Stop()
	again := make(chan time.Time, 1)
	go func() {
		bustest.Pull(t, b, 1)
		again <- time.Now()
	}()
	worked := time.Now()
	for range 13 { // longer than the ack wait
		<-beat.C
		if time.Since(worked) > ackWait/2 { // a machine that is so slow may be too late as well
			break
		}
		now := time.Now()
		if err := d.Renew(bustest.Context(t)); err != nil {
			t.Fatal(err)
		}
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
		if time.Since(worked) > ackWait { // it may have come too late
			break
		}
		worked = now
	}
	if d := (<-again).Sub(worked); d < ackWait {
		t.Errorf("delivered again %v after it was worked", d)
	}
}

// Lanes and what is in them outlive the server.
func TestLanesOutliveARestart(t *testing.T) {
	t.Parallel()
	s := bustest.Start(t)
	b, nc := bustest.Open(t, s, bustest.Quickly())
	submitMany(t, b, 0, 3)
	if err := bustest.Pull(t, b, 1)[0].Ack(bustest.Context(t)); err != nil {
		t.Fatal(err)
	}
	s.StopNATS()
	if err := s.StartNATS(); err != nil {
		t.Fatal(err)
	}
	submitMany(t, b, 3, 4)
	for _, d := range bustest.Pull(t, b, 3) {
		if err := d.Ack(bustest.Context(t)); err != nil {
			t.Error(err)
		}
	}
	if left := bustest.StreamLength(t, nc, bus.StreamTasks); left != 0 {
		t.Errorf("%d messages are left", left)
	}
}

// A worker that takes from a removed lane makes it again, that of the wake-ups too.
func TestRemovedLanesAreMadeAgain(t *testing.T) {
	b, nc := bustest.OpenNew(t)
	tasks := bustest.Tasks(t, b)
	js := bustest.NewJetStream(t, nc)
	submitMany(t, b, 1, 2)
	if err := taskqueue.New(b).Wake(bustest.Context(t), bustest.Run(), 5); err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteConsumer(bustest.Context(t), bustest.QueueIn(b, bustest.Run()), bus.ConsumerWorkers); err != nil {
		t.Fatal(err)
	}
	var api *jetstream.APIError
	if _, err := taskqueue.New(b).Tasks(bustest.Context(t)); !errors.As(err, &api) || !strings.Contains(err.Error(), "is one running?") {
		t.Errorf("got %v", err)
	}
	for _, p := range []messages.Priority{messages.PriorityNormal, messages.PriorityWake} {
		l, n := bustest.LaneOf(b, bustest.Run(), p), 0
		for range bustest.Values(t, tasks.Take(bustest.Context(t), l, 5)) {
			n++
		}
		if n != 1 {
			t.Errorf("%s: got %d messages", l, n)
		}
	}
}

// A request that waits brings the next message of its lane, and nothing when there is no lane or none comes. What was on its way to a caller that
// left comes again at once.
func TestAwait(t *testing.T) {
	t.Parallel()
	b, _ := bustest.OpenNew(t)
	tasks := bustest.Tasks(t, b)
	if d, err := tasks.Await(bustest.Context(t), acmeLane(), time.Minute); d != nil || err == nil {
		t.Errorf("without the lane: %v, %v", d, err)
	}
	if err := tasks.Make(bustest.Context(t), acmeLane()); err != nil {
		t.Fatal(err)
	}
	if d, err := tasks.Await(bustest.Context(t), acmeLane(), time.Millisecond); d != nil || err != nil {
		t.Errorf("of an empty lane: %v, %v", d, err)
	}
	got := make(chan *taskqueue.Delivery, 1)
	go func() {
		d, err := tasks.Await(bustest.Context(t), acmeLane(), time.Minute)
		if err != nil {
			t.Error(err)
		}
		got <- d
	}()
	submitMany(t, b, 0, 1)
	if d := <-got; d == nil || d.Seq != 1 || d.Delivered != 1 {
		t.Fatalf("got %+v", d)
	}
	ctx, cancel := context.WithCancel(bustest.Context(t))
	left := make(chan *taskqueue.Delivery, 1)
	go func() {
		d, _ := tasks.Await(ctx, acmeLane(), time.Minute)
		left <- d
	}()
	cancel()
	if d := <-left; d != nil {
		t.Fatalf("nothing was there: %+v", d)
	}
	submitMany(t, b, 1, 2)
	if d, err := tasks.Await(bustest.Context(t), acmeLane(), time.Minute); err != nil || d == nil || d.Seq != 2 {
		t.Errorf("after a caller that left: %+v, %v", d, err)
	}
}
