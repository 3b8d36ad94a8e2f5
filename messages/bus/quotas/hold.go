package quotas

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/record"
)

// HoldStart is the park of a task whose tenant has published more than it may submit; nil: it may begin now. The task
// was stored when it was published.
func (qs *Quotas) HoldStart(ctx context.Context, run messages.Ref, published, now time.Time) (*record.Parked, error) {
	q, err := qs.Granted(ctx, tenantQuota(run.Tenant))
	if err != nil || q.PerMinute == 0 {
		return nil, err
	}
	at, sure, err := qs.Turn(ctx, run.Tenant, q.PerMinute, published, now)
	if err != nil || at.IsZero() {
		return nil, err
	}
	return &record.Parked{
		Reason: queue.ParkQuota, Limit: queue.QuotaPerMinute, Until: &at, Again: !sure,
		Question: fmt.Sprintf("tenant %s may submit %d tasks in a minute", run.Tenant, q.PerMinute),
	}, nil
}

// HoldCall is the park of a run whose tenant has spent what its models may cost in this day or month; nil: the next model
// call may be made. A tenant without a ceiling costs no request.
func (qs *Quotas) HoldCall(ctx context.Context, run messages.Ref, now time.Time) (*record.Parked, error) {
	limit, text, until, err := qs.ceiling(ctx, run.Tenant, now)
	if err != nil || limit == "" {
		return nil, err
	}
	return &record.Parked{
		Reason: queue.ParkQuota, Limit: limit, Until: &until, Question: "tenant " + run.Tenant + ": " + text,
	}, nil
}

func (qs *Quotas) ceiling(ctx context.Context, tenant string, now time.Time) (limit, text string, until time.Time, err error) {
	q, err := qs.Granted(ctx, tenantQuota(tenant))
	if err != nil || q.CostPerDay == 0 && q.CostPerMonth == 0 {
		return "", "", until, err
	}
	today, month, err := qs.spending.Spent(ctx, tenant, now)
	if err != nil {
		return "", "", until, err
	}
	limit, text, until = q.Ceiling(today, month, now)
	return limit, text, until, nil
}

// Freed reports whether a run that is parked for a quota may continue before its time, because the limit was raised or taken
// away.
func (qs *Quotas) Freed(ctx context.Context, run messages.Ref, p *record.Parked, now time.Time) (bool, error) {
	if p.Limit == queue.QuotaPerMinute {
		q, err := qs.Granted(ctx, tenantQuota(run.Tenant))
		return err == nil && q.PerMinute == 0, err
	}
	limit, _, _, err := qs.ceiling(ctx, run.Tenant, now)
	return err == nil && limit == "", err
}

func tenantQuota(tenant string) queue.QuotaRef {
	return queue.QuotaRef{Kind: queue.QuotaTenant, Name: tenant}
}
