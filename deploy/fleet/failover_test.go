//go:build unix

package fleet_test

import (
	"testing"

	"github.com/longshore-run/longshore/worker/memory/memorytest"
)

// TestRedisFailsOver kills the master of a Redis that Sentinel watches while a run is in the middle of a model call. The run continues
// while there is no master, and the worker finds the new one by itself.
func TestRedisFailsOver(t *testing.T) {
	t.Parallel()
	redis, ok := memorytest.Sentinel(t)
	if !ok {
		t.Log("no redis-server on the PATH: the failover was left out")
		return
	}
	w := open(t, shortAckWait, func(c *modelCall) reply {
		r := turn(c, 5)
		r.Hold = c.Turn > 0
		return r
	})
	p := w.worker("first", "REDIS_URL="+redis.URL)
	g := w.watch(w.submit("work"))
	up := func(want string) {
		t.Helper()
		if got := metrics(t, p)["longshore_memory_up"]; got != want {
			t.Errorf("longshore_memory_up is %q, want %s", got, want)
		}
	}

	call := w.model.next(t) // turn 1
	up("1")
	killed := redis.KillMaster(t)
	call.answer <- turn(call, 5)
	call = w.model.next(t) // turn 2
	redis.FailedOver(t, killed)
	eventually(t, "the worker has found the new master", func() bool { return metrics(t, p)["longshore_memory_up"] == "1" })
	saves := metrics(t, p)["longshore_memory_saves_total"]
	call.answer <- turn(call, 5)
	call = w.model.next(t) // turn 3
	eventually(t, "the new master gets states", func() bool { return metrics(t, p)["longshore_memory_saves_total"] != saves })
	up("1")
	call.answer <- turn(call, 5)
	call = w.model.next(t) // turn 4
	call.answer <- turn(call, 5)
	r := g.end()
	completed(t, r, "Done: Wrote 4 bytes to step-3.txt")
	if r.Steps != 5 {
		t.Errorf("%d steps, want 5", r.Steps)
	}
	for call, n := range w.model.counts() {
		if n != 1 {
			t.Errorf("model call %q was made %d times, want once", call, n)
		}
	}
}
