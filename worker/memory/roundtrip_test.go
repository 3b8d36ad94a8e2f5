package memory_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/longshore-run/longshore/worker/memory"
)

// trips counts the requests of a client, of which each waits for its answers once.
type trips struct{ n atomic.Int64 }

func (t *trips) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (t *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		t.n.Add(1)
		return next(ctx, cmd)
	}
}

func (t *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		t.n.Add(1)
		return next(ctx, cmds)
	}
}

// A step of a run costs one request at most, which the run does not wait for, and the steps of many runs that wait together share one.
func TestAStepIsAtMostOneRoundTrip(t *testing.T) {
	rdb, counted := connect(t, miniredis(t).URL), &trips{}
	m, err := memory.New(rdb, memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	written := func(n uint64) {
		t.Helper()
		tick, deadline := time.NewTicker(time.Millisecond), time.After(time.Minute)
		defer tick.Stop()
		for m.Stats().Saves < n {
			select {
			case <-tick.C:
			case <-deadline:
				t.Fatalf("%+v, want %d saves", m.Stats(), n)
			}
		}
	}
	m.Save(ref(0), memory.Snapshot{Seq: 1, Data: []byte("a")})
	written(1)
	m.Load(t.Context(), ref(0)) // from now on the server has the scripts
	rdb.AddHook(counted)
	const steps = 20
	for i := range uint64(steps) {
		m.Save(ref(0), memory.Snapshot{Seq: 2 + i, Data: []byte("a")})
		written(2 + i)
	}
	if n := counted.n.Load(); n < 1 || n > steps {
		t.Errorf("%d steps took %d round trips", steps, n)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}

	together, err := memory.New(rdb, memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		for step := range uint64(3) {
			together.Save(ref(i+1), memory.Snapshot{Seq: 1 + step, Data: []byte("a")})
		}
	}
	counted.n.Store(0)
	if err := together.Run(ctx); err != nil { // it writes what waits, and ends
		t.Fatal(err)
	}
	if got := together.Stats(); got.Saves != 50 || counted.n.Load() != 1 {
		t.Errorf("%+v in %d round trips, want 50 in 1", got, counted.n.Load())
	}
	counted.n.Store(0)
	if _, ok := together.Load(t.Context(), ref(7)); !ok || counted.n.Load() != 1 {
		t.Errorf("a load: %v in %d round trips", ok, counted.n.Load())
	}
}
