package quotas_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/longshore-run/longshore/dispatcher/service/quotas"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/bustest"
	stored "github.com/longshore-run/longshore/messages/bus/quotas"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
)

// A pause is part of a quota, and a request about the one leaves the other alone, however they are mixed.
func TestPausesAndQuotasLeaveEachOtherAlone(t *testing.T) {
	t.Parallel()
	ctx := bustest.Context(t)
	b, _ := bustest.OpenNew(t)
	granted := stored.New(b, runlogs.New(b, runlogs.Config{}))
	handlers := quotas.New(quotas.Config{Stored: granted, Now: time.Now, Log: slog.New(slog.DiscardHandler)}).Handlers()
	of := queue.QuotaRef{Kind: queue.QuotaTenant, Name: "acme"}
	ask := func(subject string, req any) error {
		body, err := json.Marshal(req)
		if err != nil {
			return err
		}
		if _, err = handlers[subject](ctx, body); err != nil {
			err = fmt.Errorf("%s: %w", subject, err)
		}
		return err
	}
	var all sync.WaitGroup
	failed := make([]error, 6)
	for i := range failed {
		all.Go(func() {
			if i == 0 {
				failed[i] = ask(control.SubjectPause, control.PauseRequest{QuotaRef: of, By: "ann", Reason: "too many"})
				return
			}
			failed[i] = ask(control.SubjectQuotaPut, control.QuotaPut{QuotaRef: of, Quota: queue.Quota{MaxRunning: i}, By: "bob"})
		})
	}
	all.Wait()
	if err := errors.Join(failed...); err != nil {
		t.Fatal(err)
	}
	q, _, err := granted.Quota(ctx, of)
	if err != nil || q.MaxRunning == 0 || q.Paused == nil || q.Paused.By != "ann" {
		t.Fatalf("%+v, %v", q, err)
	}
	if err := ask(control.SubjectQuotaDelete, control.QuotaDelete{QuotaRef: of}); err != nil {
		t.Fatal(err)
	}
	if q, _, err = granted.Quota(ctx, of); err != nil || q.MaxRunning != 0 || q.Paused == nil {
		t.Errorf("after the quota is deleted: %+v, %v", q, err)
	}
	var bad *messages.FieldError
	forged := queue.Quota{Paused: &queue.Pause{By: "mallory", At: time.Now()}}
	if err := ask(control.SubjectQuotaPut, control.QuotaPut{QuotaRef: of, Quota: forged}); !errors.As(err, &bad) || bad.Field != "quota.paused" {
		t.Errorf("a pause in a quota: %v", err)
	}
	if err := ask(control.SubjectResume, control.PauseRequest{QuotaRef: of}); err != nil {
		t.Fatal(err)
	}
	if err := ask(control.SubjectResume, control.PauseRequest{QuotaRef: of}); !errors.Is(err, control.ErrNotPaused) {
		t.Errorf("a second resume: %v", err)
	}
	if all, err := granted.QuotaStates(ctx); err != nil || len(all) != 0 {
		t.Errorf("left behind: %+v, %v", all, err)
	}
}
