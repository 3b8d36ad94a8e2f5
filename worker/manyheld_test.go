package worker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker"
)

// A worker with hundreds of calls in hand, each several times as long as the ack wait, keeps every run although another
// worker has room: a round of heartbeats does not fall behind.
func TestManyLongCallsAreKept(t *testing.T) {
	const runs, ackWait = 400, 12 * time.Second // to claim and renew them all takes a busy machine seconds
	h := open(t, ackWait)
	long := script(t, fmt.Sprintf("scenes:\n  - turns:\n      - delay: %s\n        text: done\n", 3*ackWait))
	first, _ := h.worker("first", long, worker.Config{Slots: runs})
	all := make([]messages.Ref, runs)
	for i := range all {
		all[i] = h.submit(messages.Task{Input: messages.TextInput("Go.")})
	}
	for deadline := time.Now().Add(patience); first.Stats().Runner.Claims < runs; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d runs are claimed", first.Stats().Runner.Claims, runs)
		}
	}
	second, _ := h.worker("second", long, worker.Config{Slots: runs})
	for _, run := range all {
		if r := h.result(run); !r.Success || r.RetryInfo != nil {
			t.Fatalf("%s: %+v", run, r)
		}
	}
	if a, b := first.Stats().Runner, second.Stats().Runner; a.Claims != runs || a.Reclaims != 0 || b.Claims != 0 {
		t.Errorf("the first worker made %d claims, %d of them again, the second %d; want %d, 0 and 0", a.Claims, a.Reclaims, b.Claims, runs)
	}
}
