package bus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

func submitMany(tb testing.TB, b *bus.Bus, from, to int) {
	tb.Helper()
	for i := from; i < to; i++ {
		if _, err := b.Submit(ctxFor(tb), newTask(messages.Ref{Tenant: "acme", Run: fmt.Sprintf("run-%d", i)}), false); err != nil {
			tb.Fatal(err)
		}
	}
}

func mustTasks(tb testing.TB, b *bus.Bus) *bus.Tasks {
	tb.Helper()
	tasks, err := b.Tasks(ctxFor(tb))
	if err != nil {
		tb.Fatal(err)
	}
	return tasks
}

func TestPullEnds(t *testing.T) {
	t.Parallel()
	b, _ := openNew(t)
	tasks := mustTasks(t, b)
	for _, wait := range []time.Duration{0, time.Millisecond, 100 * time.Millisecond, time.Second} {
		start := time.Now()
		for d, err := range tasks.Pull(ctxFor(t), 5, wait) {
			t.Errorf("got %v, %v", d, err)
		}
		if took := time.Since(start); took > wait+time.Second {
			t.Errorf("a pull for %v took %v", wait, took)
		}
	}
	ctx, cancel := context.WithCancelCause(ctxFor(t))
	why := errors.New("enough")
	cancel(why)
	n := 0
	for d, err := range tasks.Pull(ctx, 5, time.Minute) {
		if n++; d != nil || !errors.Is(err, why) {
			t.Errorf("got %v, %v", d, err)
		}
	}
	if n != 1 {
		t.Errorf("got %d elements", n)
	}
}

// Several pulls of one Tasks share the queue; a caller that stops early keeps nothing from the others.
func TestPullsShareTheQueue(t *testing.T) {
	b, _ := openNew(t)
	submitMany(t, b, 0, 100)
	tasks := mustTasks(t, b)
	for d, err := range tasks.Pull(ctxFor(t), 64, 10*time.Second) {
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Nak(0); err != nil {
			t.Fatal(err)
		}
		break
	}
	var mu sync.Mutex
	seen := map[uint64]bool{}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for d, err := range tasks.Pull(ctxFor(t), 25, 20*time.Second) {
				if err != nil {
					t.Error(err)
					return
				}
				if err := d.Ack(ctxFor(t)); err != nil {
					t.Error(err)
				}
				mu.Lock()
				if seen[d.Seq] {
					t.Errorf("message %d came twice", d.Seq)
				}
				seen[d.Seq] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(seen) != 100 {
		t.Errorf("got %d messages, want 100", len(seen))
	}
}

func TestNakAndWorking(t *testing.T) {
	b, nc := openNew(t)
	if err := bus.Setup(ctxFor(t), nc, bus.Streams{AckWait: 500 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	submitMany(t, b, 0, 1)
	d := pull(t, b, 1)[0]
	start := time.Now()
	if err := d.Nak(100 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	d = pull(t, b, 1)[0]
	if took := time.Since(start); d.Delivered != 2 || took < 90*time.Millisecond || took > 450*time.Millisecond {
		t.Errorf("delivery %d after %v, want the second after 100 ms", d.Delivered, took)
	}
	beat := time.NewTicker(100 * time.Millisecond)
	defer beat.Stop()
	again := make(chan time.Time, 1)
	go func() {
		for range mustTasks(t, b).Pull(ctxFor(t), 1, 20*time.Second) {
			again <- time.Now()
		}
	}()
	start = time.Now()
	for range 7 { // longer than the ack wait
		<-beat.C
		if err := d.Working(); err != nil {
			t.Fatal(err)
		}
	}
	if at := <-again; at.Sub(start) < 700*time.Millisecond {
		t.Errorf("delivered again after %v although it was worked", at.Sub(start))
	}
}

func TestPullOverARestart(t *testing.T) {
	t.Parallel()
	s := startNATS(t)
	b, nc := open(t, s, quickly())
	tasks := mustTasks(t, b)
	const n = 40
	got := make(chan map[uint64]bool, 1)
	first := make(chan struct{})
	go func() {
		seen := map[uint64]bool{}
		for d, err := range tasks.Pull(ctxFor(t), n, 50*time.Second) {
			if err != nil {
				t.Error(err)
				break
			}
			if err := d.Ack(ctxFor(t)); err != nil {
				t.Error(err)
			}
			if seen[d.Seq] = true; len(seen) == 1 {
				close(first)
			}
		}
		got <- seen
	}()
	submitMany(t, b, 0, 1)
	<-first
	s.StopNATS()
	if err := s.StartNATS(); err != nil {
		t.Fatal(err)
	}
	submitMany(t, b, 1, n)
	if seen := <-got; len(seen) != n {
		t.Errorf("got %d messages, want %d", len(seen), n)
	}
	if left := streamLength(t, nc, bus.StreamTasks); left != 0 {
		t.Errorf("%d messages are left", left)
	}
}

func TestPullWithoutAConsumer(t *testing.T) {
	b, nc := openNew(t)
	tasks := mustTasks(t, b)
	js := newJetStream(t, nc)
	if err := js.DeleteConsumer(ctxFor(t), bus.StreamTasks, bus.ConsumerWorkers); err != nil {
		t.Fatal(err)
	}
	var errs []error
	for _, err := range tasks.Pull(ctxFor(t), 1, 300*time.Millisecond) {
		errs = append(errs, err)
	}
	if len(errs) != 1 || !strings.Contains(fmt.Sprint(errs[0]), "pull tasks: nats: no responders") {
		t.Errorf("got %v", errs)
	}
	if _, err := b.Tasks(ctxFor(t)); err == nil || !strings.Contains(err.Error(), "is one running?") {
		t.Errorf("got %v", err)
	}
	var api *jetstream.APIError
	if _, err := b.Tasks(ctxFor(t)); !errors.As(err, &api) {
		t.Errorf("got %v, want the server's answer", err)
	}
}
