// Package quotas has what operators grant tenants, agents and providers, the rates of tenants and the caps of semaphores.
package quotas

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/strict"
)

// Quotas has what operators grant tenants, agents and providers. It remembers them for a moment, so a process shares one. Safe
// for concurrent use.
type Quotas struct {
	bus      *bus.Bus
	spending Spending
	grants   grants
}

// Spending knows what tenants spent. Safe for concurrent use.
type Spending interface {
	// Spent returns what the model calls of a tenant cost in the day and month of now, in US dollars.
	Spent(ctx context.Context, tenant string, now time.Time) (today, month float64, err error)
}

// New returns the quotas that a bus holds. Ceilings on cost compare with spending.
func New(b *bus.Bus, spending Spending) *Quotas { return &Quotas{bus: b, spending: spending} }

// Quota is what an operator granted, with its revision; no limit and 0 if there is no quota. An unreadable
// quota fails closed: what this process read before applies, and without that the quota is a pause.
func (qs *Quotas) Quota(ctx context.Context, of queue.QuotaRef) (q queue.Quota, revision uint64, err error) {
	if err := of.Check(); err != nil {
		return q, 0, err
	}
	g := qs.grants.hold(of)
	m, top, ok, err := bus.QuotasBucket.Newest(ctx, qs.bus, quotaKey(of))
	switch {
	case err != nil:
		return q, 0, err
	case !ok && top.Seq != 0: // nothing of it is signed
		q, _ := qs.grants.insteadOf(of, g, top, top.Seq)
		return q, top.Seq, nil
	case !ok, bus.IsRemoved(m):
		qs.grants.saw(of, g, queue.Quota{}, top.Seq)
		return q, 0, nil
	}
	if err := strict.Decode(m.Data, &q); err != nil {
		q, first := qs.grants.insteadOf(of, g, m, top.Seq)
		if first {
			qs.bus.Log().WarnContext(ctx, "a quota cannot be read: its cached value applies, or the tenant is paused", "quota", of.String(), "revision", m.Seq, "err", err)
		}
		return q, m.Seq, nil
	}
	qs.grants.saw(of, g, q, top.Seq)
	return q, m.Seq, nil
}

// PutQuota stores a quota. It fails with messages.ErrRevision when ifRevision, unless it is nil, is not its newest
// revision.
func (qs *Quotas) PutQuota(ctx context.Context, of queue.QuotaRef, q queue.Quota, by string, ifRevision *uint64) (control.Change, error) {
	if err := of.Check(); err != nil {
		return control.Change{}, err
	}
	if err := q.Validate(of.Kind); err != nil {
		return control.Change{}, err
	}
	body, err := json.Marshal(q)
	if err != nil {
		return control.Change{}, fmt.Errorf("encode quota: %w", err)
	}
	defer qs.grants.expire()
	change, _, err := bus.QuotasBucket.Apply(ctx, qs.bus, bus.Edit{Name: quotaKey(of), Body: body, By: by, IfRevision: ifRevision})
	if err != nil {
		return change, fmt.Errorf("store quota of %s: %w", of, err)
	}
	return change, nil
}

// DeleteQuota takes all limits away; nothing happens when there are none. It fails with messages.ErrRevision when
// ifRevision, unless it is nil, is not its newest revision.
func (qs *Quotas) DeleteQuota(ctx context.Context, of queue.QuotaRef, by string, ifRevision *uint64) error {
	if err := of.Check(); err != nil {
		return err
	}
	defer qs.grants.expire()
	if _, _, err := bus.QuotasBucket.Apply(ctx, qs.bus, bus.Edit{Name: quotaKey(of), By: by, IfRevision: ifRevision}); err != nil {
		return fmt.Errorf("delete quota of %s: %w", of, err)
	}
	return nil
}

// maxQuotas bounds a list.
const maxQuotas = 10_000

// QuotaStates are all that were granted, 10,000 at most, as Quota reads each: with their revisions and without their usage, in
// no order.
func (qs *Quotas) QuotaStates(ctx context.Context) ([]control.QuotaState, error) {
	out := []control.QuotaState{}
	for subject, err := range qs.bus.Stream(bus.StreamQuotas).Subjects(ctx, bus.QuotasBucket.Prefix+"*.*") {
		if err != nil {
			return nil, fmt.Errorf("list quotas: %w", err)
		}
		of, ok := quotaOf(subject)
		if !ok {
			continue // no quota
		}
		q, revision, err := qs.Quota(ctx, of)
		if err != nil { // without it the others would seem to be all
			return nil, fmt.Errorf("list quotas: %w", err)
		}
		if revision != 0 {
			out = append(out, control.QuotaState{QuotaRef: of, Quota: q, Revision: revision})
		}
		if len(out) == maxQuotas {
			break
		}
	}
	return out, nil
}

func quotaKey(of queue.QuotaRef) string { return string(of.Kind) + "." + of.Name }
