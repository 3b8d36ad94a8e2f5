package dispatcher_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/quotas"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/bus/taskqueue"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/strict"
)

var acme = queue.QuotaRef{Kind: queue.QuotaTenant, Name: "acme"}

func (y *yard) grants(q queue.Quota) *control.QuotaChange {
	y.t.Helper()
	c, err := y.client.Quotas().Put(y.t.Context(), control.QuotaPut{QuotaRef: acme, Quota: q, By: "root"})
	if err != nil {
		y.t.Fatal(err)
	}
	return c
}

func (y *yard) submit(id string) error {
	_, err := y.client.Submit(y.t.Context(), messages.Task{ID: id, Tenant: "acme", Input: messages.TextInput("do " + id)})
	return err
}

// ask submits over NATS, at any of the dispatchers.
func (y *yard) ask(id string) *messages.Problem {
	y.t.Helper()
	m, err := y.nc.Request(control.SubjectSubmit, fmt.Appendf(nil, `{"id":%q,"tenant":"acme","input":"x"}`, id), patience)
	if err != nil {
		y.t.Fatal(err)
	}
	if m.Header.Get("Nats-Service-Error-Code") == "" {
		return nil
	}
	var p messages.Problem
	if err := json.Unmarshal(m.Data, &p); err != nil {
		y.t.Fatal(err)
	}
	return &p
}

func (y *yard) queued() int {
	y.t.Helper()
	n, err := taskqueue.New(y.bus).TasksOf(y.t.Context(), "acme")
	if err != nil {
		y.t.Fatal(err)
	}
	return n
}

// Dispatchers side by side count in one place: together they let in no more than one would.
func TestDispatchersShareARate(t *testing.T) {
	y := newYard(t)
	y.dispatcher()
	y.dispatcher()
	y.grants(queue.Quota{PerMinute: 10})
	began := time.Now()
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		refused = map[string]*messages.Problem{}
		allowed int
	)
	for g := range 4 {
		wg.Go(func() {
			for i := range 10 {
				id := fmt.Sprintf("task-%d-%d", g, i)
				p := y.ask(id)
				mu.Lock()
				if p == nil {
					allowed++
				} else {
					refused[id] = p
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	minutes := int(time.Now().Unix()/60-began.Unix()/60) + 1
	if allowed < 10 || allowed > 10*minutes || y.queued() != allowed {
		t.Errorf("%d tasks were accepted in %d minutes, and %d are queued", allowed, minutes, y.queued())
	}
	again := time.Now()
	for id, p := range refused {
		if p.Status != 429 || p.Code != messages.CodeRateLimited || !p.Retryable || p.RetryAfter < 1 || p.RetryAfter > 60 ||
			!strings.Contains(p.Detail, "perMinute") {
			t.Errorf("%s was refused so: %+v", id, p)
		}
		if p := y.ask(id); p == nil && time.Now().Unix()/60 == began.Unix()/60 && again.Unix()/60 == began.Unix()/60 {
			t.Errorf("%s was let in when it came again in the same minute", id)
		}
	}
}

// Each dispatcher believes its count for a second: two let in twice as much at most.
func TestDispatchersShareAQueue(t *testing.T) {
	y := newYard(t)
	y.dispatcher()
	y.dispatcher()
	y.grants(queue.Quota{MaxQueued: 5})
	var last *messages.Problem
	allowed := 0
	for i := range 30 {
		if p := y.ask(fmt.Sprintf("task-%d", i)); p == nil {
			allowed++
		} else {
			last = p
		}
	}
	if allowed < 5 || allowed > 10 || y.queued() != allowed || last == nil || last.RetryAfter < 1 || !strings.Contains(last.Detail, "5 may be") {
		t.Fatalf("%d were accepted, %d are queued, the last was refused so: %+v", allowed, y.queued(), last)
	}
	// What was accepted is a success again; what was refused may come when there is room.
	if p := y.ask("task-0"); p != nil {
		t.Errorf("an accepted task was refused: %+v", p)
	}
	if err := y.submit("another"); !errors.Is(err, dispatcher.ErrRateLimited) {
		t.Errorf("the client says %v", err)
	}
	y.grants(queue.Quota{MaxQueued: 50})
	y.accepted("another")
}

// accepted submits until it is let in: dispatchers believe a quota for two seconds.
func (y *yard) accepted(id string) {
	y.t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = y.submit(id); err == nil {
			return
		}
		var limit *dispatcher.RateLimitError
		if !errors.As(err, &limit) || limit.Wait < time.Second || limit.Problem.Code != messages.CodeRateLimited {
			y.t.Fatal(err)
		}
	}
	y.t.Fatalf("%s: %v", id, err)
}

func TestResubmitIsNotCounted(t *testing.T) {
	y := newYard(t)
	y.dispatcher()
	y.grants(queue.Quota{PerMinute: 3})
	for range 20 {
		if err := y.submit("same"); err != nil {
			t.Fatal(err)
		}
	}
	state, err := y.client.Quotas().Get(t.Context(), acme)
	if err != nil || state.Usage.Submitted > 1 || state.Usage.Queued != 1 {
		t.Errorf("usage: %+v, %v", state.Usage, err)
	}
	if err := y.submit("other"); err != nil {
		t.Error(err)
	}
	_, err = y.client.Submit(t.Context(), messages.Task{ID: "same", Tenant: "acme", Input: messages.TextInput("something else")})
	if !errors.Is(err, dispatcher.ErrConflict) {
		t.Errorf("another task with its id: %v", err)
	}
}

// While usage cannot be counted, no submit is refused; workers hold back what costs money.
func TestWithoutCountersTasksPass(t *testing.T) {
	y := newYard(t)
	y.dispatcher()
	y.grants(queue.Quota{PerMinute: 1, MaxQueued: 100})
	if _, err := y.nc.Request("$JS.API.STREAM.DELETE."+bus.StreamRates, nil, patience); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := y.submit(fmt.Sprint("task-", i)); err != nil {
			t.Error(err)
		}
	}
}

// Without a dispatcher a submit is what it always was.
func TestWithoutDispatchersTasksPass(t *testing.T) {
	y := newYard(t)
	stop := y.dispatcher()
	y.grants(queue.Quota{MaxQueued: 1})
	stop()
	for i := range 3 {
		if err := y.submit(fmt.Sprint("task-", i)); err != nil {
			t.Error(err)
		}
	}
}

func TestHostileQuotaRequests(t *testing.T) {
	y := newYard(t)
	y.dispatcher()
	for subject, bodies := range map[string][]string{
		control.SubjectAdmit: {
			"", "null", "[]", `{"tenant":"*"}`, `{"tenant":"acme","id":"a.b"}`, `{"tenant":"acme","tasks":-1}`, `{"tenant":"` + strings.Repeat("a", 1<<16) + `"}`,
		},
		control.SubjectQuotaGet: {`{}`, `{"kind":"tenant","name":">"}`, `{"kind":"tenant","name":"a","more":1}`},
		control.SubjectQuotaPut: {
			`{"kind":"tenant","name":"a","quota":{"perMinute":1e99}}`, `{"kind":"tenant","name":"a","quota":{"maxQueued":-1}}`,
			`{"kind":"tenant","name":"a","quota":{"costPerDay":"1"}}`, `{"kind":"agent","name":"a","quota":{"perMinute":1}}`,
			`{"kind":"tenant","name":"a","quota":{"paused":{"at":"2026-01-01T00:00:00Z"}}}`,
		},
		control.SubjectQuotaDelete: {`{"kind":"everybody","name":"a"}`},
		control.SubjectWorkerDrain: {`{}`, `{"worker":1}`, `{"worker":"` + strings.Repeat("w", 5000) + `"}`},
		control.SubjectWorkers:     {`{"all":true}`},
	} {
		for _, body := range bodies {
			m, err := y.nc.Request(subject, []byte(body), patience)
			if err != nil {
				t.Fatal(err)
			}
			var p messages.Problem
			if err := json.Unmarshal(m.Data, &p); err != nil || p.Status != 400 || p.Field == "" {
				t.Errorf("%s %s: %s", subject, strict.Clip(body, 80), m.Data)
			}
		}
	}
}

// An answer that no worker gives is left out.
func TestForgedWorkers(t *testing.T) {
	y := newYard(t)
	y.dispatcher()
	_, err := y.nc.Subscribe(messages.StatusOfWorkers, func(m *nats.Msg) {
		for _, body := range []string{"", "{", `{"name":"w","id":"a.b"}`, `{"name":"` + strings.Repeat("w", 5000) + `","id":"x"}`, `{"name":"real","id":"x"}`} {
			_ = m.Respond([]byte(body))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	list, err := y.client.Fleet().Workers(t.Context())
	for end := time.Now().Add(patience); err == nil && len(list) == 0 && time.Now().Before(end); {
		list, err = y.client.Fleet().Workers(t.Context()) // who answers late is not listed
	}
	if err != nil || len(list) != 1 || list[0].Name != "real" {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := y.client.Fleet().Drain(t.Context(), "real"); !errors.Is(err, dispatcher.ErrNoWorker) {
		t.Errorf("drain of one that does not listen: %v", err)
	}
}

// A change of a quota keeps a pause that another client set, and is refused if it is based on another revision.
func TestQuotasKeepPauses(t *testing.T) {
	y := newYard(t)
	y.dispatcher()
	ctx := t.Context()
	pause := &queue.Pause{By: "ann", Reason: "too many", At: time.Now().UTC().Truncate(time.Second)}
	if _, err := quotas.New(y.bus, runlogs.New(y.bus, runlogs.Config{})).PutQuota(ctx, acme, queue.Quota{Weight: 2, Paused: pause}, "ann", nil); err != nil {
		t.Fatal(err)
	}
	c := y.grants(queue.Quota{MaxQueued: 7})
	if c.Before.Weight != 2 || c.After.Weight != 0 || c.After.MaxQueued != 7 || c.After.Paused == nil || *c.After.Paused != *pause {
		t.Errorf("%+v", c)
	}
	stale := c.Revision - 1
	_, err := y.client.Quotas().Put(ctx, control.QuotaPut{QuotaRef: acme, IfRevision: &stale})
	if !errors.Is(err, dispatcher.ErrRevision) {
		t.Errorf("a change of what has changed: %v", err)
	}
	if c, err = y.client.Quotas().Delete(ctx, control.QuotaDelete{QuotaRef: acme}); err != nil || c.After.Paused == nil || c.After.MaxQueued != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	state, err := y.client.Quotas().Get(ctx, acme)
	if err != nil || state.Quota.Paused == nil || state.Quota.MaxQueued != 0 || state.Revision == 0 {
		t.Errorf("%+v, %v", state, err)
	}
	other := queue.QuotaRef{Kind: queue.QuotaAgent, Name: "writer"}
	if _, err := y.client.Quotas().Put(ctx, control.QuotaPut{QuotaRef: other, Quota: queue.Quota{MaxRunning: 1}}); err != nil {
		t.Fatal(err)
	}
	if all, err := y.client.Quotas().List(ctx); err != nil || len(all) != 2 || all[0].QuotaRef != other {
		t.Errorf("%+v, %v", all, err)
	}
	if c, err := y.client.Quotas().Delete(ctx, control.QuotaDelete{QuotaRef: other}); err != nil || c.Revision != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	if all, err := y.client.Quotas().List(ctx); err != nil || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}

// The lines of a batch wait for room, fail for nothing, and continue when there is some.
func TestBatchWaitsForAQuota(t *testing.T) {
	y := newYard(t)
	y.dispatcher()
	y.grants(queue.Quota{MaxQueued: 4})
	s := spec("limited")
	s.Tenant = "acme"
	if _, err := y.client.Batches().Submit(t.Context(), s, read(file(12, "x"))); err != nil {
		t.Fatal(err)
	}
	b := y.until(s.BatchRef, func(b *messages.Batch) bool { return b.Waits != "" })
	if b.Status != messages.BatchInProgress || b.Counts.Failed != 0 || b.Counts.Submitted > 4 || !strings.Contains(b.Waits, "maxQueued") {
		t.Errorf("%s, %+v, waits for %q", b.Status, b.Counts, b.Waits)
	}
	if n := y.queued(); n != 4 {
		t.Errorf("%d are queued", n)
	}
	y.grants(queue.Quota{MaxQueued: 100})
	b = y.until(s.BatchRef, func(b *messages.Batch) bool { return b.Counts.Submitted == 12 })
	if b.Counts.Failed != 0 || y.queued() != 12 {
		t.Errorf("%+v, %d are queued", b.Counts, y.queued())
	}
	y.until(s.BatchRef, func(b *messages.Batch) bool { return b.Waits == "" })
}
