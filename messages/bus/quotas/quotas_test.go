package quotas_test

import (
	"errors"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	"github.com/longshore-run/longshore/messages/bus/quotas"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/runlog"
)

func TestQuotas(t *testing.T) {
	b, _ := bustest.OpenNew(t)
	granted := quotas.New(b, bustest.Logs(b))
	ctx := t.Context()
	ann := queue.QuotaRef{Kind: queue.QuotaTenant, Name: "ann"}
	q, revision, err := granted.Quota(ctx, ann)
	if err != nil || revision != 0 || q != (queue.Quota{}) {
		t.Fatalf("got %+v, %d, %v before anybody said anything", q, revision, err)
	}
	want := queue.Quota{Weight: 3, MaxQueued: 10}
	if _, err := granted.PutQuota(ctx, ann, want, "root", nil); err != nil {
		t.Fatal(err)
	}
	q, revision, err = granted.Quota(ctx, ann)
	if err != nil || revision == 0 || q != want {
		t.Fatalf("got %+v, %d, %v", q, revision, err)
	}
	stale := revision + 1
	if _, err := granted.PutQuota(ctx, ann, queue.Quota{}, "root", &stale); !errors.Is(err, messages.ErrRevision) {
		t.Errorf("got %v for a change of what has changed", err)
	}
	var field *messages.FieldError
	if _, err := granted.PutQuota(ctx, ann, queue.Quota{Weight: -1}, "root", nil); !errors.As(err, &field) {
		t.Errorf("got %v for a weight of -1", err)
	}
	if _, _, err := granted.Quota(ctx, queue.QuotaRef{Kind: "tenant", Name: "*"}); !errors.As(err, &field) {
		t.Errorf("got %v for a name with a star", err)
	}
	if all, err := granted.QuotaStates(ctx); err != nil || len(all) != 1 || all[0].QuotaRef != ann || all[0].Quota != want {
		t.Errorf("got %v, %v", all, err)
	}
	if err := granted.DeleteQuota(ctx, ann, "root", nil); err != nil {
		t.Fatal(err)
	}
	if all, err := granted.QuotaStates(ctx); err != nil || len(all) != 0 {
		t.Errorf("got %v, %v after it was deleted", all, err)
	}
}

// Junk in the place of a quota lifts nothing: not where the quota was known, and not where it was not.
func TestJunkLiftsNoQuota(t *testing.T) {
	s := bustest.Start(t)
	b, nc := bustest.Open(t, s, bus.Config{})
	granted := quotas.New(b, bustest.Logs(b))
	ctx := bustest.Context(t)
	ann, ben := queue.QuotaRef{Kind: queue.QuotaTenant, Name: "ann"}, queue.QuotaRef{Kind: queue.QuotaAgent, Name: "ben"}
	want := queue.Quota{MaxRunning: 3}
	for _, of := range []queue.QuotaRef{ann, ben} {
		if _, err := granted.PutQuota(ctx, of, want, "root", nil); err != nil {
			t.Fatal(err)
		}
	}
	caps := granted.NewCaps(0)
	if _, err := caps.Load(ctx); err != nil {
		t.Fatal(err)
	}
	for _, junk := range []string{`{"stream":"TASKS","seq":1}`, `{`, `null`, ``} {
		for _, of := range []queue.QuotaRef{ann, ben} {
			if _, err := bustest.NewJetStream(t, nc).Publish(ctx, "$KV.QUOTAS."+string(of.Kind)+"."+of.Name, []byte(junk)); err != nil {
				t.Fatal(err)
			}
		}
		if wider, err := caps.Load(ctx); err != nil || len(wider) != 0 || caps.Cap("tenant.ann") != 3 || caps.Cap("agent.ben") != 3 {
			t.Errorf("%q: wider %v, caps %d and %d, %v", junk, wider, caps.Cap("tenant.ann"), caps.Cap("agent.ben"), err)
		}
		if q, err := granted.Granted(ctx, ann); err != nil || q != want {
			t.Errorf("%q: granted %+v, %v", junk, q, err)
		}
	}
	if n := granted.UnreadableQuotas(); n != 8 {
		t.Errorf("%d were met, want 8", n)
	}

	fresh, err := bus.Open(ctx, bustest.Connect(t, s), bus.Config{}) // a process that starts now
	if err != nil {
		t.Fatal(err)
	}
	begins := quotas.New(fresh, bustest.Logs(fresh))
	if q, err := begins.Granted(ctx, ann); err != nil || q.Paused == nil {
		t.Errorf("granted at the start: %+v, %v", q, err)
	}
	begun := begins.NewCaps(0)
	if _, err := begun.Load(ctx); err != nil || begun.Cap(queue.PauseSemaphore(ann)) != 0 || begun.Cap(queue.PauseSemaphore(ben)) != 0 {
		t.Errorf("caps at the start: %d and %d, %v", begun.Cap(queue.PauseSemaphore(ann)), begun.Cap(queue.PauseSemaphore(ben)), err)
	}
	if n := begins.UnreadableQuotas(); n != 2 {
		t.Errorf("%d were met, want 2", n)
	}

	_, revision, err := granted.Quota(ctx, ann) // who puts a quota in its place ends it
	if err != nil {
		t.Fatal(err)
	}
	if _, err := granted.PutQuota(ctx, ann, queue.Quota{MaxRunning: 1}, "root", &revision); err != nil {
		t.Fatal(err)
	}
	if err := granted.DeleteQuota(ctx, ben, "root", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := begun.Load(ctx); err != nil || begun.Cap("tenant.ann") != 1 || begun.Cap("agent.ben") != runlog.NoCap {
		t.Errorf("caps at the end: %d and %d, %v", begun.Cap("tenant.ann"), begun.Cap("agent.ben"), err)
	}
}
