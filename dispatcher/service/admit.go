package service

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/runlog"
)

const (
	// How old a count of a tenant's queued tasks may be; what this dispatcher let in since is added to it.
	queuedTTL = time.Second
	// When to come again to a queue that is full.
	queuedRetry = 5 * time.Second
	// How often a queue is counted for one task.
	maxCounts = 3
	// Bounds the counts that are kept, which then begin anew.
	maxDoors = 4096
)

// door remembers how many tasks of tenants are queued.
type door struct {
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
func (s *Service) answerAdmit(ctx context.Context, req control.AdmitRequest) (any, error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	unlimited, err := s.admit(ctx, messages.Ref{Tenant: req.Tenant, Run: req.ID})
	if err != nil {
		return nil, err
	}
	return control.AdmitReply{Unlimited: unlimited}, nil
}

// admit lets a task in, or is a problem of code rate_limited. A task that was accepted before passes and is not counted.
// The run's id may be empty when it is a new one.
//
// When nobody can say how much is used the task passes, but for what was spent: the workers hold that back.
func (s *Service) admit(ctx context.Context, run messages.Ref) (unlimited bool, err error) {
	q, err := s.cfg.Bus.Granted(ctx, messages.QuotaRef{Kind: messages.QuotaTenant, Name: run.Tenant})
	switch {
	case err != nil:
		s.cfg.Log.WarnContext(ctx, "a task passes although its tenant's quota is unknown", "tenant", run.Tenant, "err", err)
		return false, nil
	case q.MaxQueued == 0 && q.PerMinute == 0 && q.CostPerDay == 0 && q.CostPerMonth == 0:
		return true, nil
	}
	if run.Run != "" {
		switch _, _, err := s.find(ctx, run); {
		case err == nil:
			return false, nil
		case !errors.Is(err, runlog.ErrNotFound):
			return false, err
		}
	}
	now := s.cfg.Controller.Now()
	for _, check := range []func(context.Context, messages.Ref, messages.Quota, time.Time) (*messages.Problem, error){
		s.withinCost, s.withinRate, s.withinQueue,
	} {
		refused, err := check(ctx, run, q, now)
		switch {
		case refused != nil:
			return false, refused
		case err != nil:
			s.cfg.Log.WarnContext(ctx, "a task passes although its tenant's usage is unknown", "tenant", run.Tenant, "err", err)
		}
	}
	return false, nil
}

func (s *Service) withinCost(ctx context.Context, run messages.Ref, q messages.Quota, now time.Time) (*messages.Problem, error) {
	if q.CostPerDay == 0 && q.CostPerMonth == 0 {
		return nil, nil
	}
	today, month, err := s.cfg.Bus.Spent(ctx, run.Tenant, now)
	if err != nil {
		return nil, err
	}
	limit, text, until := q.Ceiling(today, month, now)
	if limit == "" {
		return nil, nil
	}
	return control.RateLimited(run.Tenant, limit, text, until.Sub(now)), nil
}

func (s *Service) withinQueue(ctx context.Context, run messages.Ref, q messages.Quota, _ time.Time) (*messages.Problem, error) {
	if q.MaxQueued == 0 {
		return nil, nil
	}
	n, passes := s.door.pass(run.Tenant, q.MaxQueued)
	for range maxCounts { // others may use up a count before it is read
		if n != unknownQueue {
			break
		}
		if err := s.countQueued(ctx, run.Tenant, q.MaxQueued); err != nil {
			return nil, err
		}
		n, passes = s.door.pass(run.Tenant, q.MaxQueued)
	}
	if n == unknownQueue {
		n = q.MaxQueued
	}
	if passes {
		return nil, nil
	}
	return control.RateLimited(run.Tenant, messages.QuotaMaxQueued,
		fmt.Sprintf("%d tasks are queued, and %d may be", n, q.MaxQueued), queuedRetry), nil
}

func (s *Service) withinRate(ctx context.Context, run messages.Ref, q messages.Quota, now time.Time) (*messages.Problem, error) {
	if q.PerMinute == 0 {
		return nil, nil
	}
	n, err := s.cfg.Bus.CountSubmit(ctx, run.Tenant, now)
	if err != nil || n <= q.PerMinute {
		return nil, err
	}
	return control.RateLimited(run.Tenant, messages.QuotaPerMinute,
		fmt.Sprintf("%d tasks may be submitted in a minute", q.PerMinute), now.Truncate(time.Minute).Add(time.Minute).Sub(now)), nil
}

// countQueued counts the tasks of a tenant that wait for a worker. Those that workers have in hand are taken off only when
// they make the difference.
func (s *Service) countQueued(ctx context.Context, tenant string, most int) error {
	_, err, _ := s.door.counting.Do(tenant, func() (any, error) {
		if s.door.knows(tenant, most) { // somebody has counted meanwhile, and others have passed since
			return nil, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
		defer cancel()
		began := time.Now()
		n, err := s.cfg.Bus.TasksOf(ctx, tenant)
		n = max(n, s.door.passed(tenant)) // some of them may be on their way
		exact := err == nil && n >= most
		if exact {
			n, err = s.withoutBegun(ctx, tenant, n)
		}
		if err == nil {
			s.door.put(tenant, n, exact, time.Since(began))
		}
		return nil, err
	})
	return err
}

// waitingTasks is how many tasks of a tenant wait for a worker.
func (s *Service) waitingTasks(ctx context.Context, tenant string) (int, error) {
	n, err := s.cfg.Bus.TasksOf(ctx, tenant)
	if err != nil || n == 0 {
		return n, err
	}
	return s.withoutBegun(ctx, tenant, n)
}

// withoutBegun takes off the tasks that workers have in hand.
func (s *Service) withoutBegun(ctx context.Context, tenant string, n int) (int, error) {
	workers, err := s.stores.workers.Workers(ctx)
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
func (d *door) pass(tenant string, most int) (n int, passes bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	q := d.queued[tenant]
	switch {
	case !q.holds(most):
		return unknownQueue, false
	case q.n >= most:
		return q.n, false
	}
	q.n++
	d.queued[tenant] = q
	return q.n, true
}

// holds reports whether a count is good enough.
func (q queuedTasks) holds(most int) bool {
	return time.Now().Before(q.until) && (q.exact || q.n < most)
}

// passed is a count that is fresh, with those that passed since; 0: there is none.
func (d *door) passed(tenant string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if q := d.queued[tenant]; time.Now().Before(q.until) && !q.exact {
		return q.n
	}
	return 0
}

func (d *door) knows(tenant string, most int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.queued[tenant].holds(most)
}

// put keeps a count. One that took long is kept longer, so that counting takes a small part of the server's time.
func (d *door) put(tenant string, n int, exact bool, took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.queued == nil || len(d.queued) >= maxDoors {
		d.queued = map[string]queuedTasks{}
	}
	d.queued[tenant] = queuedTasks{n, exact, time.Now().Add(max(queuedTTL, 2*took))}
}
