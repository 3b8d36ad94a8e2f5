package semaphores_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/quotas"
	"github.com/longshore-run/longshore/messages/bus/semaphores"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
)

func TestLineJoinedByMany(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	logs := bustest.Logs(b)
	k := &runlog.Controller{Log: logs, Queue: taskqueue.New(b), Events: logs, Semaphores: semaphores.New(b), Now: time.Now, NewID: func() string { return messages.NewID(time.Now()) }}
	semaphore := queue.KeySemaphore("t", "deploy")
	var all sync.WaitGroup
	var mu sync.Mutex
	var placed []string
	for i := range 12 {
		all.Go(func() {
			run := messages.Ref{Tenant: "t", Run: fmt.Sprint("r", i)}
			bustest.LogOf(t, b, run)
			last, _, err := bustest.Logs(b).Last(bustest.Context(t), run)
			if err != nil {
				t.Error(err)
			}
			for range 2 { // again is harmless
				waits, err := k.Acquire(bustest.Context(t), run, last.Head.ClaimSeq, []string{semaphore}, 3)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				if waits == "" && !slices.Contains(placed, run.Run) {
					placed = append(placed, run.Run)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	l, _, err := semaphores.New(b).Semaphore(bustest.Context(t), semaphore)
	if err != nil || len(placed) != 3 || len(l.Permits) != 3 || l.Limit != 3 {
		t.Errorf("%v have a place, %+v, %v", placed, l, err)
	}
	// A worker that was cut off gets none.
	ended := messages.Ref{Tenant: "t", Run: "old"}
	bustest.LogOf(t, b, ended, &record.Finished{})
	last, _, _ := bustest.Logs(b).Last(bustest.Context(t), ended)
	if _, err := k.Acquire(bustest.Context(t), ended, last.Head.ClaimSeq, []string{queue.KeySemaphore("t", "other")}, 1); err == nil {
		t.Error("a run that has ended was given a place")
	}
}

func TestLineOrder(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	ctx, semaphore := bustest.Context(t), queue.TenantSemaphore("t")
	refs := []messages.Ref{{Tenant: "t", Run: "c"}, {Tenant: "t", Run: "a"}, {Tenant: "t", Run: "b"}}
	for _, r := range append(refs, refs[0]) { // who waits already keeps its position
		if err := semaphores.New(b).Wait(ctx, semaphore, r); err != nil {
			t.Fatal(err)
		}
	}
	if n, more, err := semaphores.New(b).Ahead(ctx, semaphore, refs[2], 10); n != 2 || more || err != nil {
		t.Errorf("%d ahead, %t, %v", n, more, err)
	}
	if n, more, err := semaphores.New(b).Ahead(ctx, semaphore, refs[2], 1); n != 1 || !more || err != nil {
		t.Errorf("%d ahead, %t, %v", n, more, err)
	}
	var got []messages.Ref
	for range refs {
		run, at, err := semaphores.New(b).First(ctx, semaphore)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, run)
		for range 2 { // again is harmless
			if err := semaphores.New(b).Unwait(ctx, semaphore, run, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff(refs, got); diff != "" {
		t.Error(diff)
	}
	if _, at, err := semaphores.New(b).First(ctx, semaphore); at != 0 || err != nil {
		t.Errorf("a run waits at %d, %v", at, err)
	}
}

func TestLineRefuses(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	run := messages.Ref{Tenant: "t", Run: "r"}
	for _, semaphore := range []string{"", "tenant", "tenant.>", "tenant.a.b", "key.t", "key.t.*", "paused.planet.x", "paused.tenant", "planet.x"} {
		if err := semaphores.New(b).PutSemaphore(bustest.Context(t), semaphore, 0, queue.Semaphore{}); err == nil {
			t.Errorf("%q was stored", semaphore)
		}
		if err := semaphores.New(b).Wait(bustest.Context(t), semaphore, run); err == nil {
			t.Errorf("a run waits in %q", semaphore)
		}
	}
	if err := semaphores.New(b).Wait(bustest.Context(t), "tenant.t", messages.Ref{Tenant: "t", Run: ">"}); err == nil {
		t.Error("a wildcard waits")
	}
}

func TestCaps(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	ctx, caps := bustest.Context(t), quotas.New(b, bustest.Logs(b)).NewCaps(time.Hour)
	grant := func(q queue.Quota) (wider []string) {
		t.Helper()
		if _, err := quotas.New(b, bustest.Logs(b)).PutQuota(ctx, queue.QuotaRef{Kind: queue.QuotaTenant, Name: "t"}, q, "ann", nil); err != nil {
			t.Fatal(err)
		}
		wider, err := caps.Load(ctx)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(wider)
		return wider
	}
	const semaphore, paused = "tenant.t", "paused.tenant.t"
	if caps.Cap(semaphore) != runlog.NoCap {
		t.Error("a cap before there is one")
	}
	for _, tc := range []struct {
		quota       queue.Quota
		cap, paused int
		wider       []string
	}{
		{queue.Quota{MaxRunning: 2}, 2, runlog.NoCap, nil},
		{queue.Quota{MaxRunning: 3}, 3, runlog.NoCap, []string{semaphore}},
		{queue.Quota{MaxRunning: 1, Paused: &queue.Pause{}}, 0, 0, nil}, // no run is woken only to wait elsewhere
		{queue.Quota{MaxRunning: 1}, 1, runlog.NoCap, []string{paused, semaphore}},
		{queue.Quota{Paused: &queue.Pause{}}, runlog.NoCap, 0, []string{semaphore}},
		{queue.Quota{}, runlog.NoCap, runlog.NoCap, []string{paused}},
	} {
		wider := grant(tc.quota)
		if diff := cmp.Diff(tc.wider, wider); diff != "" || caps.Cap(semaphore) != tc.cap || caps.Cap(paused) != tc.paused {
			t.Errorf("%+v: %d, %d %s", tc.quota, caps.Cap(semaphore), caps.Cap(paused), diff)
		}
	}
}

// A look that takes long does not keep the caps from being followed, and one that failed is done again.
func TestCapsAreFollowedDuringALook(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	ctx, caps := bustest.Context(t), quotas.New(b, bustest.Logs(b)).NewCaps(5*time.Millisecond)
	of := queue.QuotaRef{Kind: queue.QuotaTenant, Name: "t"}
	grant := func(q queue.Quota) {
		t.Helper()
		if _, err := quotas.New(b, bustest.Logs(b)).PutQuota(ctx, of, q, "ann", nil); err != nil {
			t.Fatal(err)
		}
	}
	becomes := func(want int) {
		t.Helper()
		for caps.Cap("tenant.t") != want {
			if ctx.Err() != nil {
				t.Fatalf("the cap is %d, want %d", caps.Cap("tenant.t"), want)
			}
			time.Sleep(time.Millisecond)
		}
	}
	looks, proceed := make(chan string), make(chan error)
	run, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		caps.Run(run, func(ctx context.Context, semaphore string) error {
			select {
			case looks <- semaphore:
				return <-proceed
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	grant(queue.Quota{MaxRunning: 1})
	becomes(1)
	grant(queue.Quota{MaxRunning: 2})
	<-looks
	grant(queue.Quota{MaxRunning: 3})
	becomes(3)
	proceed <- errors.New("no server")
	if semaphore := <-looks; semaphore != "tenant.t" {
		t.Errorf("looked at %s", semaphore)
	}
	proceed <- nil
	stop()
	<-ended
}
