package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
)

// ErrRateLimited means that a limit of the tenant's quota is used up. The error is a *RateLimitError too, which says for how
// long.
var ErrRateLimited = errors.New("the tenant's quota is used up")

// RateLimitError is a refusal for the time being. Nothing was stored: the same task may be submitted again with the same id.
type RateLimitError struct {
	Wait    time.Duration     // until it is worth while to come again
	Problem *messages.Problem // which limit, and how much of it is used
}

func (e *RateLimitError) Error() string { return e.Problem.Detail }

// Is makes it ErrRateLimited.
func (e *RateLimitError) Is(target error) bool { return target == ErrRateLimited }

// Unwrap is the problem.
func (e *RateLimitError) Unwrap() error { return e.Problem }

// admitWait bounds the wait for the dispatcher's leave to submit. Without an answer the task is published all the same:
// workers hold back what goes beyond a quota.
const admitWait = 2 * time.Second

// maxUnlimited bounds the tenants that are remembered.
const maxUnlimited = 4096

// unlimited remembers tenants that need not ask.
type unlimited struct {
	mu    sync.Mutex
	until map[string]time.Time
}

func (u *unlimited) has(tenant string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return time.Now().Before(u.until[tenant])
}

func (u *unlimited) add(tenant string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.until == nil || len(u.until) >= maxUnlimited {
		u.until = map[string]time.Time{}
	}
	u.until[tenant] = time.Now().Add(control.AdmitFresh)
}

// admit asks whether a task may be submitted now. The id is empty when it is a new one.
func (c *Client) admit(ctx context.Context, tenant, id string) error {
	if c.unlimited.has(tenant) {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, admitWait)
	defer cancel()
	var reply control.AdmitReply
	err := c.request(asking, control.SubjectAdmit, control.AdmitRequest{Tenant: tenant, ID: id}, &reply)
	var refused *messages.Problem
	switch {
	case errors.As(err, &refused) && refused.Code == messages.CodeRateLimited:
		return &RateLimitError{time.Duration(refused.RetryAfter) * time.Second, refused}
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("ask for leave to submit: %w", context.Cause(ctx))
	case err != nil || reply.Unlimited: // no answer, or no limit: not every task needs to wait for it
		c.unlimited.add(tenant)
	}
	return nil
}

// List returns all that operators granted, by kind and name, without their usage.
func (q Quotas) List(ctx context.Context) ([]control.QuotaState, error) {
	var out control.QuotaList
	err := q.client.request(ctx, control.SubjectQuotaList, struct{}{}, &out)
	return out.Quotas, err
}

// Get returns what an operator granted, with its usage when it is a tenant's. Without one its revision is 0.
func (q Quotas) Get(ctx context.Context, of queue.QuotaRef) (*control.QuotaState, error) {
	return ask[control.QuotaState](ctx, q.client, control.SubjectQuotaGet, of)
}

// Put grants something in the place of what was granted before; a pause stays. It counts within two seconds, and for
// runs that wait for it at the next sweep. ErrRevision: it was changed since r.IfRevision.
func (q Quotas) Put(ctx context.Context, r control.QuotaPut) (*control.QuotaChange, error) {
	return ask[control.QuotaChange](ctx, q.client, control.SubjectQuotaPut, r)
}

// Delete takes all limits away; a pause stays. ErrRevision: it was changed since r.IfRevision.
func (q Quotas) Delete(ctx context.Context, r control.QuotaDelete) (*control.QuotaChange, error) {
	return ask[control.QuotaChange](ctx, q.client, control.SubjectQuotaDelete, r)
}
