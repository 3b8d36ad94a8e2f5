package admission

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/longshore-run/longshore/dispatcher/service/request"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/runlog"
)

const (
	// How old a count of a tenant's queued tasks may be; what this dispatcher let in since is added to it.
	queuedTTL = time.Second
	// When to come again to a queue that is full.
	queuedRetry = 5 * time.Second
	// How often a queue is counted for one task.
	maxCounts = 3
	// Bounds the counts that are kept; beyond it all are dropped.
	maxCounted = 4096
)

// counts remembers how many tasks of tenants are queued.
type counts struct {
	counting singleflight.Group

	mu     sync.Mutex
	queued map[string]queuedTasks
}

type queuedTasks struct {
	n     int
	exact bool // without those that workers have in hand
	until time.Time
}

// answerAdmit answers a client that publishes tasks by itself.
func (a *Admission) answerAdmit(ctx context.Context, req control.AdmitRequest) (any, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	unlimited, err := a.Admit(ctx, messages.Ref{Tenant: req.Tenant, Run: req.ID})
	if err != nil {
		return nil, err
	}
	return control.AdmitReply{Unlimited: unlimited}, nil
}

// Admit lets a task in, or is a problem of code rate_limited. A task that was accepted before passes and is not counted.
// The run's id may be empty when it is a new one.
//
// When the usage cannot be read the task passes: the workers check rates and spending again.
func (a *Admission) Admit(ctx context.Context, run messages.Ref) (unlimited bool, err error) {
	q, err := a.cfg.Quotas.Granted(ctx, queue.QuotaRef{Kind: queue.QuotaTenant, Name: run.Tenant})
	switch {
	case err != nil:
		a.cfg.Log.WarnContext(ctx, "a task passes although its tenant's quota is unknown", "tenant", run.Tenant, "err", err)
		return false, nil
	case q.MaxQueued == 0 && q.PerMinute == 0 && q.CostPerDay == 0 && q.CostPerMonth == 0:
		return true, nil
	}
	if run.Run != "" {
		switch _, _, err := a.cfg.Runs.Find(ctx, run); {
		case err == nil:
			return false, nil
		case !errors.Is(err, runlog.ErrNotFound):
			return false, err
		}
	}
	now := a.cfg.Now()
	for _, check := range []func(context.Context, messages.Ref, queue.Quota, time.Time) (*messages.Problem, error){
		a.withinCost, a.withinRate, a.withinQueue,
	} {
		refused, err := check(ctx, run, q, now)
		switch {
		case refused != nil:
			return false, refused
		case err != nil:
			a.cfg.Log.WarnContext(ctx, "a task passes although its tenant's usage is unknown", "tenant", run.Tenant, "err", err)
		}
	}
	return false, nil
}

func (a *Admission) withinCost(ctx context.Context, run messages.Ref, q queue.Quota, now time.Time) (*messages.Problem, error) {
	if q.CostPerDay == 0 && q.CostPerMonth == 0 {
		return nil, nil
	}
	today, month, err := a.cfg.Quotas.Spent(ctx, run.Tenant, now)
	if err != nil {
		return nil, err
	}
	limit, text, until := q.Ceiling(today, month, now)
	if limit == "" {
		return nil, nil
	}
	return control.RateLimited(run.Tenant, limit, text, until.Sub(now)), nil
}

func (a *Admission) withinQueue(ctx context.Context, run messages.Ref, q queue.Quota, _ time.Time) (*messages.Problem, error) {
	if q.MaxQueued == 0 {
		return nil, nil
	}
	n, passes := a.counts.pass(run.Tenant, q.MaxQueued)
	for range maxCounts { // others may use up a count before it is read
		if n != unknownQueue {
			break
		}
		if err := a.countQueued(ctx, run.Tenant, q.MaxQueued); err != nil {
			return nil, err
		}
		n, passes = a.counts.pass(run.Tenant, q.MaxQueued)
	}
	if n == unknownQueue {
		n = q.MaxQueued
	}
	if passes {
		return nil, nil
	}
	return control.RateLimited(run.Tenant, queue.QuotaMaxQueued,
		fmt.Sprintf("%d tasks are queued, and %d may be", n, q.MaxQueued), queuedRetry), nil
}

func (a *Admission) withinRate(ctx context.Context, run messages.Ref, q queue.Quota, now time.Time) (*messages.Problem, error) {
	if q.PerMinute == 0 {
		return nil, nil
	}
	n, err := a.cfg.Quotas.CountSubmit(ctx, run.Tenant, now)
	if err != nil || n <= q.PerMinute {
		return nil, err
	}
	return control.RateLimited(run.Tenant, queue.QuotaPerMinute,
		fmt.Sprintf("%d tasks may be submitted in a minute", q.PerMinute), now.Truncate(time.Minute).Add(time.Minute).Sub(now)), nil
}

// countQueued counts the tasks of a tenant that wait for a worker. Those that workers have in hand are taken off only when
// they make the difference.
func (a *Admission) countQueued(ctx context.Context, tenant string, most int) error {
	_, err, _ := a.counts.counting.Do(tenant, func() (any, error) {
		if a.counts.knows(tenant, most) { // another request has counted meanwhile, and others have passed since
			return nil, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), request.Timeout)
		defer cancel()
		began := time.Now()
		n, err := a.cfg.Queue.TasksOf(ctx, tenant)
		n = max(n, a.counts.passed(tenant)) // some of them may be on their way
		exact := err == nil && n >= most
		if exact {
			n, err = a.withoutBegun(ctx, tenant, n)
		}
		if err == nil {
			a.counts.put(tenant, n, exact, time.Since(began))
		}
		return nil, err
	})
	return err
}

// WaitingTasks is how many tasks of a tenant wait for a worker.
func (a *Admission) WaitingTasks(ctx context.Context, tenant string) (int, error) {
	n, err := a.cfg.Queue.TasksOf(ctx, tenant)
	if err != nil || n == 0 {
		return n, err
	}
	return a.withoutBegun(ctx, tenant, n)
}

// withoutBegun takes off the tasks that workers have in hand.
func (a *Admission) withoutBegun(ctx context.Context, tenant string, n int) (int, error) {
	workers, err := a.cfg.Workers.Workers(ctx)
	if err != nil {
		return n, err
	}
	for i := range workers {
		n -= max(0, workers[i].Begun[tenant])
	}
	return max(0, n), nil
}

// unknownQueue is the length of a queue that must be counted.
const unknownQueue = -1

// pass lets a task in and counts it, if there is room. A count that refuses must be exact, and none be old.
func (c *counts) pass(tenant string, most int) (n int, passes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.queued[tenant]
	switch {
	case !q.holds(most):
		return unknownQueue, false
	case q.n >= most:
		return q.n, false
	}
	q.n++
	c.queued[tenant] = q
	return q.n, true
}

// holds reports whether a count is good enough.
func (q queuedTasks) holds(most int) bool {
	return time.Now().Before(q.until) && (q.exact || q.n < most)
}

// passed is a count that is fresh, with those that passed since; 0: there is none.
func (c *counts) passed(tenant string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if q := c.queued[tenant]; time.Now().Before(q.until) && !q.exact {
		return q.n
	}
	return 0
}

func (c *counts) knows(tenant string, most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.queued[tenant].holds(most)
}

// put keeps a count. One that took long is kept longer, so that counting takes a small part of the server's time.
func (c *counts) put(tenant string, n int, exact bool, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queued == nil || len(c.queued) >= maxCounted {
		c.queued = map[string]queuedTasks{}
	}
	c.queued[tenant] = queuedTasks{n, exact, time.Now().Add(max(queuedTTL, 2*took))}
}
