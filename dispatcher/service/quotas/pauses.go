package quotas

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
)

func (qs *Quotas) pauses(ctx context.Context, _ struct{}) (any, error) {
	all, err := qs.cfg.Stored.QuotaStates(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b control.QuotaState) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	list := control.PauseList{Pauses: []control.PausedThing{}}
	for _, q := range all {
		if p := q.Quota.Paused; p != nil {
			list.Pauses = append(list.Pauses, control.PausedThing{QuotaRef: q.QuotaRef, Pause: *p})
		}
	}
	return list, nil
}

func (qs *Quotas) pause(ctx context.Context, req control.PauseRequest) (any, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	if req.Kind == queue.QuotaAgent {
		if _, err := qs.cfg.Catalog.Agent(ctx, req.Name); err != nil {
			return nil, err
		}
	}
	paused := control.PausedThing{QuotaRef: req.QuotaRef}
	_, err := qs.changeQuota(ctx, req.QuotaRef, req.By, nil, func(q queue.Quota) (queue.Quota, error) {
		if q.Paused == nil {
			q.Paused = &queue.Pause{By: req.By, Reason: req.Reason, At: qs.cfg.Now()}
		}
		paused.Pause = *q.Paused
		return q, nil
	})
	return paused, err
}

func (qs *Quotas) resume(ctx context.Context, req control.PauseRequest) (any, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	was := control.PausedThing{QuotaRef: req.QuotaRef}
	_, err := qs.changeQuota(ctx, req.QuotaRef, req.By, nil, func(q queue.Quota) (queue.Quota, error) {
		if q.Paused == nil {
			return q, fmt.Errorf("%s: %w", req, control.ErrNotPaused)
		}
		was.Pause, q.Paused = *q.Paused, nil
		return q, nil
	})
	return was, err
}
