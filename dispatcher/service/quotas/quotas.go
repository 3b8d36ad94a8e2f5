// Package quotas answers the requests about what operators grant, and about pauses.
package quotas

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/longshore-run/longshore/dispatcher/service/admission"
	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus/catalog"
	stored "github.com/longshore-run/longshore/messages/bus/quotas"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/strict"
)

// Config is what Quotas works with.
type Config struct {
	Stored    *stored.Quotas // what was granted, and what tenants have used
	Catalog   *catalog.Catalog
	Admission *admission.Admission
	Now       func() time.Time
	Log       *slog.Logger
}

// Quotas answers the requests about what operators grant, and about pauses, which are part of a quota.
type Quotas struct{ cfg Config }

// New returns Quotas.
func New(cfg Config) *Quotas { return &Quotas{cfg} }

// Handlers are the requests about quotas and pauses.
func (qs *Quotas) Handlers() request.Handlers {
	return request.Handlers{
		control.SubjectQuotaList:   request.Read(qs.quotaList),
		control.SubjectQuotaGet:    request.Read(qs.quotaGet),
		control.SubjectQuotaPut:    request.Read(qs.quotaPut),
		control.SubjectQuotaDelete: request.Read(qs.quotaDelete),
		control.SubjectPauses:      request.Read(qs.pauses),
		control.SubjectPause:       request.Read(qs.pause),
		control.SubjectResume:      request.Read(qs.resume),
	}
}

func (qs *Quotas) quotaList(ctx context.Context, _ struct{}) (any, error) {
	all, err := qs.cfg.Stored.QuotaStates(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b control.QuotaState) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return control.QuotaList{Quotas: all}, nil
}

func (qs *Quotas) quotaGet(ctx context.Context, of queue.QuotaRef) (any, error) {
	q, revision, err := qs.cfg.Stored.Quota(ctx, of)
	if err != nil {
		return nil, err
	}
	state := control.QuotaState{QuotaRef: of, Quota: q, Revision: revision}
	if of.Kind == queue.QuotaTenant {
		if state.Usage, err = qs.usage(ctx, of.Name, q); err != nil {
			return nil, err
		}
	}
	return state, nil
}

// usage is what a tenant uses now.
func (qs *Quotas) usage(ctx context.Context, tenant string, q queue.Quota) (*control.QuotaUsage, error) {
	var (
		u   control.QuotaUsage
		err error
	)
	now := qs.cfg.Now()
	if u.Queued, err = qs.cfg.Admission.WaitingTasks(ctx, tenant); err != nil {
		return nil, err
	}
	if u.Submitted, err = qs.cfg.Stored.Submits(ctx, tenant, now); err != nil {
		return nil, err
	}
	if q.PerMinute > 0 { // those beyond were refused
		u.Submitted = min(u.Submitted, q.PerMinute)
	}
	if u.CostToday, u.CostThisMonth, err = qs.cfg.Stored.Spent(ctx, tenant, now); err != nil {
		return nil, err
	}
	u.CostToday, u.CostThisMonth = messages.RoundCost(u.CostToday), messages.RoundCost(u.CostThisMonth)
	return &u, nil
}

// maxQuotaRaces bounds the race of those that change one quota.
const maxQuotaRaces = 20

func (qs *Quotas) quotaPut(ctx context.Context, req control.QuotaPut) (any, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	return qs.changeQuota(ctx, req.QuotaRef, req.By, req.IfRevision, func(before queue.Quota) (queue.Quota, error) {
		if p := req.Quota.Paused; p != nil && !samePause(p, before.Paused) {
			return before, &messages.FieldError{Field: "quota.paused", Reason: "must be left out or unchanged here: use pause and resume"}
		}
		after := req.Quota
		after.Paused = before.Paused
		return after, nil
	})
}

func samePause(a, b *queue.Pause) bool {
	return b != nil && a.By == b.By && a.Reason == b.Reason && a.At.Equal(b.At)
}

func (qs *Quotas) quotaDelete(ctx context.Context, req control.QuotaDelete) (any, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	return qs.changeQuota(ctx, req.QuotaRef, req.By, req.IfRevision, func(before queue.Quota) (queue.Quota, error) {
		return queue.Quota{Paused: before.Paused}, nil
	})
}

// changeQuota changes the stored quota, and begins again when others change it at the same time.
func (qs *Quotas) changeQuota(
	ctx context.Context, of queue.QuotaRef, by string, ifRevision *uint64, change func(before queue.Quota) (queue.Quota, error),
) (any, error) {
	for range maxQuotaRaces {
		before, revision, err := qs.cfg.Stored.Quota(ctx, of)
		if err != nil {
			return nil, err
		}
		if ifRevision != nil && *ifRevision != revision {
			return nil, messages.ErrRevision
		}
		after, err := change(before)
		if err != nil {
			return nil, err
		}
		done := control.QuotaChange{QuotaRef: of, Before: before, After: after}
		if after == (queue.Quota{}) && revision == 0 {
			return done, nil
		}
		if after == (queue.Quota{}) { // so that it is no longer listed
			err = qs.cfg.Stored.DeleteQuota(ctx, of, by, &revision)
		} else {
			var c control.Change
			c, err = qs.cfg.Stored.PutQuota(ctx, of, after, by, &revision)
			done.Revision = c.Revision
		}
		switch {
		case errors.Is(err, messages.ErrRevision):
			continue
		case err != nil:
			return nil, err
		}
		qs.cfg.Log.InfoContext(ctx, "quota changed", "kind", string(of.Kind), "name", of.Name, "by", strict.Clip(by, 128), "revision", done.Revision)
		return done, nil
	}
	return nil, request.Conflict("other clients keep changing the quota; try again")
}
