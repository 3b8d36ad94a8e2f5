package worker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/sessions"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/worker"
)

// Lanes, a cap, a rate, a session, a pause and cancels of one tenant at once, in two workers: all its runs end, never two
// of them work, and nothing is kept.
func TestLimitsTogether(t *testing.T) {
	h := open(t, 30*time.Second)
	const tenant = "acme"
	quota := queue.Quota{MaxRunning: 1, PerMinute: 4}
	h.grant(queue.QuotaTenant, tenant, quota)
	var runs []messages.Ref
	publish := func(fields string) {
		t.Helper()
		run := messages.Ref{Tenant: tenant, Run: fmt.Sprint("r", len(runs))}
		if _, err := h.nc.Request("tasks.normal."+tenant+"."+run.Run, []byte(`{"input":"`+run.Run+`"`+fields+`}`), patience); err != nil {
			t.Fatal(err)
		}
		runs = append(runs, run)
	}
	for range 5 { // more than may begin in a minute, even if it ends meanwhile
		publish(`,"session":"s"`)
		publish("")
	}
	publish(`,"notBefore":"` + time.Now().Add(3*time.Second).UTC().Format(time.RFC3339Nano) + `"`)
	m := newCrowd()
	h.worker("w1", m, worker.Config{Slots: 2})
	h.worker("w2", m, worker.Config{Slots: 2})
	m.wait(t)
	// A run that waits holds no slot: all others that may park do, while one works.
	waits := map[string][]messages.Ref{}
	eventually(t, "all others wait", func() bool {
		clear(waits)
		n := 0
		for _, r := range runs {
			st, err := h.client.Status(t.Context(), r)
			if err == nil && st.Status == messages.StatusWaiting {
				waits[st.Waits] = append(waits[st.Waits], r)
				n++
			}
		}
		return n == len(runs)-1
	})
	if len(waits[queue.ParkQuota]) == 0 || len(waits[queue.ParkSemaphore])+len(waits[queue.ParkSession]) == 0 {
		t.Fatalf("they wait so: %v", waits)
	}
	quota.Paused = &queue.Pause{By: "ann", At: time.Now()}
	h.grant(queue.QuotaTenant, tenant, quota)
	publish(`,"session":"s"`)
	cancelled := map[messages.Ref]bool{}
	for _, of := range waits {
		run := of[len(of)-1]
		if _, err := h.client.Cancel(t.Context(), run, "enough"); err != nil {
			t.Fatal(err)
		}
		if r := h.result(run); r.Status != messages.StatusCancelled {
			t.Errorf("%s was cancelled: %+v", run.Run, r)
		}
		cancelled[run] = true
	}
	close(m.holds)
	h.grant(queue.QuotaTenant, tenant, queue.Quota{MaxRunning: 1})
	eventually(t, "all end", func() bool {
		if err := taskqueue.NewSweeps(h.bus).ScheduleSweep(t.Context(), time.Hour); err != nil { // workers believe what they read for two seconds
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // a poll
		for _, r := range runs {
			if st, err := h.client.Status(t.Context(), r); err != nil || !st.Status.Ended() {
				return false
			}
		}
		return true
	})
	for _, r := range runs {
		if res := h.result(r); !res.Success && !cancelled[r] {
			t.Errorf("%s: %+v", r.Run, res.Error)
		}
	}
	if m.most != 1 {
		t.Errorf("%d at once, want 1", m.most)
	}
	eventually(t, "the places and turns are given back", func() bool {
		s, _, err := sessions.New(h.bus, h.logs()).Session(t.Context(), tenant, "s")
		return err == nil && len(s.Runs) == 0 && len(h.places(queue.TenantSemaphore(tenant))) == 0
	})
}
