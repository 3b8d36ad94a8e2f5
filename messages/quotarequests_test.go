package messages_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
)

func TestCeiling(t *testing.T) {
	now := time.Date(2026, 12, 31, 23, 59, 30, 0, time.FixedZone("", 3600)) // 22:59:30 in UTC
	for name, tc := range map[string]struct {
		quota        queue.Quota
		today, month float64
		limit        string
		until        time.Time
	}{
		"none":              {queue.Quota{}, 1e6, 1e6, "", time.Time{}},
		"below":             {queue.Quota{CostPerDay: 1, CostPerMonth: 5}, 0.999, 4.9, "", time.Time{}},
		"reached":           {queue.Quota{CostPerDay: 1}, 1, 1, queue.QuotaCostPerDay, time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)},
		"the month is over": {queue.Quota{CostPerDay: 1, CostPerMonth: 5}, 2, 6, queue.QuotaCostPerMonth, time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)},
		"the day is not":    {queue.Quota{CostPerMonth: 5}, 6, 6, queue.QuotaCostPerMonth, time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		t.Run(name, func(t *testing.T) {
			limit, text, until := tc.quota.Ceiling(tc.today, tc.month, now)
			if limit != tc.limit || !until.Equal(tc.until) || (text == "") != (limit == "") {
				t.Errorf("got %q, %q, %s", limit, text, until)
			}
		})
	}
	if got := queue.NextMonth(time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC)); !got.Equal(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("the month after February begins on %s", got)
	}
}

func TestSpent(t *testing.T) {
	usd := func(f float64) *float64 { return &f }
	e := record.Entry{Records: []record.Record{
		&record.Started{Prefix: record.Records{&record.ModelReplied{Cost: usd(100)}}}, // another run paid that
		&record.ModelReplied{Cost: usd(0.000000001)},
		&record.ModelReplied{}, // unknown
		&record.ModelReplied{Cost: usd(math.NaN())},
		&record.ModelReplied{Cost: usd(-3)},
		&record.ModelReplied{Cost: usd(math.Inf(1))},
		&record.Summarised{Cost: usd(0.25)},
	}}
	if got := e.Spent(); got != 250_000_001 {
		t.Errorf("spent %d", got)
	}
}

func TestRateLimited(t *testing.T) {
	for wait, want := range map[time.Duration]int{-time.Hour: 1, 0: 1, time.Millisecond: 1, time.Second: 1, 1001 * time.Millisecond: 2} {
		p := control.RateLimited("acme", queue.QuotaPerMinute, "60 tasks", wait)
		if p.RetryAfter != want || p.Status != 429 || p.Code != messages.CodeRateLimited || !p.Retryable {
			t.Errorf("a wait of %s: %+v", wait, p)
		}
	}
}

func TestQuotaRequestsAreChecked(t *testing.T) {
	tenant := queue.QuotaRef{Kind: queue.QuotaTenant, Name: "acme"}
	long := string(make([]byte, 300))
	for name, err := range map[string]error{
		"not a kind":                 (&control.QuotaPut{QuotaRef: queue.QuotaRef{Kind: "unknown", Name: "x"}}).Check(),
		"a name that is a subject":   (&control.QuotaDelete{QuotaRef: queue.QuotaRef{Kind: queue.QuotaTenant, Name: "a.>"}}).Check(),
		"less than nothing":          (&control.QuotaPut{QuotaRef: tenant, Quota: queue.Quota{MaxQueued: -1}}).Check(),
		"an infinite amount":         (&control.QuotaPut{QuotaRef: tenant, Quota: queue.Quota{CostPerDay: math.Inf(1)}}).Check(),
		"a long by":                  (&control.QuotaPut{QuotaRef: tenant, By: long}).Check(),
		"a tenant that is a filter":  control.AdmitRequest{Tenant: "*"}.Check(),
		"no tenant":                  control.AdmitRequest{}.Check(),
		"an id that is a subject":    control.AdmitRequest{Tenant: "acme", ID: "a.b"}.Check(),
		"no worker":                  control.WorkerDrain{}.Check(),
		"a worker of many bytes":     control.WorkerDrain{Worker: string(make([]byte, 2000))}.Check(),
		"a rate of an agent":         (&control.QuotaPut{QuotaRef: queue.QuotaRef{Kind: queue.QuotaAgent, Name: "x"}, Quota: queue.Quota{PerMinute: 1}}).Check(),
		"a ceiling of a provider":    (&control.QuotaPut{QuotaRef: queue.QuotaRef{Kind: queue.QuotaProvider, Name: "x"}, Quota: queue.Quota{CostPerMonth: 1}}).Check(),
		"a ceiling that is no price": (&control.QuotaPut{QuotaRef: tenant, Quota: queue.Quota{CostPerDay: math.NaN()}}).Check(),
	} {
		if _, ok := errors.AsType[*messages.FieldError](err); !ok {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
