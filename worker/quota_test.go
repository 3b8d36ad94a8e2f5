package worker_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker"
)

// grants gives a tenant a quota that counts at once, for who has not read another.
func (h *house) grants(tenant string, q queue.Quota) {
	h.t.Helper()
	_, err := h.client.Quotas().Put(h.t.Context(), control.QuotaPut{QuotaRef: queue.QuotaRef{Kind: queue.QuotaTenant, Name: tenant}, Quota: q})
	if err != nil {
		h.t.Fatal(err)
	}
}

// waits returns how a run waits for its quota, once it does.
func (h *house) waits(run messages.Ref) messages.RunWaiting {
	h.t.Helper()
	var waits messages.RunWaiting
	if err := json.Unmarshal(h.until(run, messages.EventRunWaiting).Data, &waits); err != nil {
		h.t.Fatal(err)
	}
	return waits
}

// raw publishes a task directly, as a backend may that does not ask a dispatcher.
func (h *house) raw(tenant, id string) messages.Ref {
	h.t.Helper()
	run := messages.Ref{Tenant: tenant, Run: id}
	if _, err := h.nc.Request("tasks.normal."+tenant+"."+id, []byte(`{"input":"write"}`), patience); err != nil {
		h.t.Fatal(err)
	}
	return run
}

// A raw publisher's tasks meet the same rate limit as submitted ones: tasks beyond it wait visibly and are not lost.
func TestRawTasksMeetTheRate(t *testing.T) {
	h := open(t, 30*time.Second)
	h.grants("acme", queue.Quota{PerMinute: 2})
	m := &counted{Provider: script(t, dear)}
	var runs []messages.Ref
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		runs = append(runs, h.raw("acme", id))
	}
	free := h.raw("other", "a")
	h.worker("w", m, worker.Config{Slots: 1})
	if r := h.result(free); !r.Success {
		t.Errorf("a tenant without a quota: %+v", r)
	}
	ended, waiting := 0, 0
	for _, run := range runs {
		for e, err := range h.client.Watch(t.Context(), run) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Name() == messages.EventRunFinished {
				ended++
			}
			if e.Name() != messages.EventRunWaiting {
				continue
			}
			var waits messages.RunWaiting
			if err := json.Unmarshal(e.Data, &waits); err != nil {
				t.Fatal(err)
			}
			if waits.Reason != queue.ParkQuota || waits.Limit != queue.QuotaPerMinute || waits.Until == nil || waits.Until.Second() != 0 {
				t.Errorf("%s waits so: %+v", run, waits)
			}
			waiting++
			break
		}
	}
	// The minute may have changed while they were published.
	if ended < 2 || ended > 4 || waiting != len(runs)-ended {
		t.Errorf("%d ended and %d wait", ended, waiting)
	}
}

// The daily cost ceiling holds runs back and wakes them when it is raised, and no call is paid for twice.
func TestCostCeiling(t *testing.T) {
	h := open(t, 30*time.Second)
	h.grants("acme", queue.Quota{CostPerDay: 0.02})
	m := &counted{Provider: script(t, dear)}
	h.frugal(m)
	run := h.submit(messages.Task{Tenant: "acme", Input: messages.TextInput("write")})
	waits := h.waits(run)
	if waits.Reason != queue.ParkQuota || waits.Limit != queue.QuotaCostPerDay || waits.Until == nil ||
		!waits.Until.Equal(queue.NextDay(waits.Until.Add(-time.Second))) || !strings.Contains(waits.Question, "$0.02 of $0.02") {
		t.Errorf("it waits so: %+v", waits)
	}
	if n := m.calls.Load(); n != 1 {
		t.Errorf("%d calls were made", n)
	}
	var state *control.QuotaState
	for end := time.Now().Add(patience); time.Now().Before(end); { // what was read counts for a second
		var err error
		if state, err = h.client.Quotas().Get(t.Context(), queue.QuotaRef{Kind: queue.QuotaTenant, Name: "acme"}); err != nil {
			t.Fatal(err)
		}
		if state.Usage.CostToday > 0 {
			break
		}
	}
	if state.Usage.CostToday != 0.02 || state.Usage.CostThisMonth != 0.02 {
		t.Errorf("usage: %+v", state.Usage)
	}
	_, err := h.client.Submit(t.Context(), messages.Task{Tenant: "acme", Input: messages.TextInput("write")})
	var limit *dispatcher.RateLimitError
	if !errors.Is(err, dispatcher.ErrRateLimited) || !errors.As(err, &limit) || limit.Wait <= 0 || limit.Wait > 24*time.Hour+time.Second {
		t.Errorf("another one is refused so: %v", err)
	}
	h.grants("acme", queue.Quota{CostPerDay: 0.05})
	deadline := time.Now().Add(patience)
	for { // workers believe what they have read for two seconds
		if err := taskqueue.NewSweeps(h.bus).ScheduleSweep(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		st, err := h.client.Status(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		if st.Status.Ended() {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the raised ceiling woke no run: %+v", st)
		}
		time.Sleep(200 * time.Millisecond)
	}
	if r := h.result(run); !r.Success || m.calls.Load() != 2 || r.RetryInfo != nil {
		t.Errorf("after %d calls: %+v", m.calls.Load(), r)
	}
}

// A worker that is drained hands its run to another one, and ends by itself.
func TestDrainOneWorker(t *testing.T) {
	h := open(t, 30*time.Second)
	m := newHanging(t)
	first, _ := h.worker("first", m.provider(t), worker.Config{Name: "first", Version: "1.2.3", DrainTimeout: 100 * time.Millisecond})
	run := h.submit(messages.Task{Input: messages.TextInput("hang, then write")})
	<-m.began
	h.worker("second", script(t, dear), worker.Config{Name: "second"})
	list := h.workers("first", "second")
	if w := list[0]; w.Version != "1.2.3" || w.Slots != worker.DefaultSlots || w.Held != 1 || w.Busy != 1 || w.Draining || w.Begun != nil || w.Since.IsZero() {
		t.Errorf("the first says of itself: %+v", w)
	}
	if _, err := h.client.Fleet().Drain(t.Context(), "third"); !errors.Is(err, dispatcher.ErrNoWorker) {
		t.Errorf("not a worker: %v", err)
	}
	if _, err := h.client.Fleet().Drain(t.Context(), "a.>"); !errors.Is(err, dispatcher.ErrNoWorker) {
		t.Errorf("a worker that is a filter: %v", err)
	}
	w, err := h.client.Fleet().Drain(t.Context(), "first")
	if err != nil || !w.Draining || w.ID != list[0].ID {
		t.Fatalf("drain: %+v, %v", w, err)
	}
	if r := h.result(run); !r.Success {
		t.Errorf("the run continued as: %+v", r)
	}
	h.workers("second")
	if s := first.Stats(); s.Held != 0 {
		t.Errorf("it still holds %d", s.Held)
	}
	if diff := cmp.Diff([]string{"first", "second"}, h.owners(run)); diff != "" {
		t.Error(diff)
	}
}

// Of two workers with a name, the id says which is meant.
func TestDrainByName(t *testing.T) {
	h := open(t, 30*time.Second)
	h.worker("a", script(t, dear), worker.Config{Name: "twin"})
	h.worker("b", script(t, dear), worker.Config{Name: "twin"})
	list := h.workers("twin", "twin")
	if _, err := h.client.Fleet().Drain(t.Context(), "twin"); !errors.Is(err, dispatcher.ErrManyWorkers) {
		t.Errorf("two have the name: %v", err)
	}
	if _, err := h.client.Fleet().Drain(t.Context(), list[1].ID); err != nil {
		t.Fatal(err)
	}
	if left := h.workers("twin"); left[0].ID != list[0].ID {
		t.Errorf("the wrong one is left: %+v", left)
	}
}

// workers waits until just these are listed.
func (h *house) workers(want ...string) (list []messages.WorkerStatus) {
	h.t.Helper()
	var got []string
	for end := time.Now().Add(patience); time.Now().Before(end); {
		var err error
		if list, err = h.client.Fleet().Workers(h.t.Context()); err != nil {
			h.t.Fatal(err)
		}
		got = nil
		for i := range list {
			got = append(got, list[i].Name)
		}
		if cmp.Equal(want, got) {
			return list
		}
	}
	h.t.Fatalf("the workers are %v, want %v", got, want)
	return nil
}

// owners are the workers that claimed a run.
func (h *house) owners(run messages.Ref) (out []string) {
	h.t.Helper()
	for e, err := range h.logs().Read(h.t.Context(), run, 0, ^uint64(0)) {
		if err != nil {
			h.t.Fatal(err)
		}
		for _, r := range e.Records {
			if c, ok := r.(*record.Claimed); ok {
				out = append(out, c.Worker)
			}
		}
	}
	return out
}
