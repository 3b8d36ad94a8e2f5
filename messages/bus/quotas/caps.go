package quotas

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/runlog"
)

// DefaultCapsRefresh is how often Caps looks whether quotas changed.
const DefaultCapsRefresh = 2 * time.Second

// Caps is a view of all quotas as they were when Load returned last: a semaphore that got more permits since is never missed.
// Safe for concurrent use.
type Caps struct {
	quotas *Quotas
	every  time.Duration
	now    atomic.Pointer[quotasAt] // made of the grants of the bus
}

type quotasAt struct {
	version uint64 // grows with each change
	of      map[queue.QuotaRef]queue.Quota
}

var _ runlog.Caps = (*Caps)(nil)

// NewCaps returns caps that know of no quota before Load or Run. Every is how often Run looks; 0: DefaultCapsRefresh.
func (qs *Quotas) NewCaps(every time.Duration) *Caps {
	if every == 0 {
		every = DefaultCapsRefresh
	}
	c := &Caps{quotas: qs, every: every}
	c.now.Store(&quotasAt{})
	return c
}

// Cap implements runlog.Caps.
func (c *Caps) Cap(semaphore string) int { return c.now.Load().cap(semaphore) }

func (q *quotasAt) cap(semaphore string) int {
	of, ok := queue.QuotaOfSemaphore(semaphore)
	if !ok {
		return runlog.NoCap
	}
	granted := q.of[of]
	switch {
	case queue.IsPauseSemaphore(semaphore) && granted.Paused != nil:
		return 0
	case queue.IsPauseSemaphore(semaphore) || granted.MaxRunning == 0:
		return runlog.NoCap
	case granted.Paused != nil && of.Kind == queue.QuotaTenant:
		return 0 // whom it was given to would only go and wait for the end of the pause
	default:
		return granted.MaxRunning
	}
}

// Load reads the quotas if any changed, and returns the semaphores that have more permits than before.
func (c *Caps) Load(ctx context.Context) (wider []string, err error) {
	all, version, err := c.quotas.allGranted(ctx)
	if err != nil {
		return nil, err
	}
	old := c.now.Load()
	if version == old.version {
		return nil, nil
	}
	now := &quotasAt{version, all}
	c.now.Store(now)
	for of := range old.of {
		for _, semaphore := range []string{string(of.Kind) + "." + of.Name, queue.PauseSemaphore(of)} {
			before, after := old.cap(semaphore), now.cap(semaphore)
			if before != runlog.NoCap && (after == runlog.NoCap || after > before) {
				wider = append(wider, semaphore)
			}
		}
	}
	return wider, nil
}

// Run keeps the caps up to date until ctx ends. It calls look for each semaphore that has more permits than before, again if
// that fails. A look may take long: meanwhile the caps are kept up to date all the same.
func (c *Caps) Run(ctx context.Context, look func(ctx context.Context, semaphore string) error) {
	ticker := time.NewTicker(c.every)
	defer ticker.Stop()
	var owed []string        // lines to look at
	var failed chan []string // of the looks in progress; nil: none do
	defer func() {
		if failed != nil {
			<-failed
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return
		case again := <-failed:
			owed, failed = append(owed, again...), nil
			continue
		case <-ticker.C:
		}
		wider, err := c.Load(ctx)
		if err != nil && ctx.Err() == nil {
			c.quotas.bus.Log().WarnContext(ctx, "caps are not up to date", "err", err)
		}
		if owed = append(owed, wider...); len(owed) == 0 || failed != nil {
			continue
		}
		slices.Sort(owed)
		lines, done := slices.Compact(owed), make(chan []string, 1)
		owed, failed = nil, done
		go func() { done <- c.lookAt(ctx, lines, look) }()
	}
}

// lookAt returns the lines at which a look failed.
func (c *Caps) lookAt(ctx context.Context, lines []string, look func(ctx context.Context, semaphore string) error) (failed []string) {
	for _, semaphore := range lines {
		if err := look(ctx, semaphore); err != nil && ctx.Err() == nil {
			c.quotas.bus.Log().WarnContext(ctx, "give the places of a semaphore", "semaphore", semaphore, "err", err)
			failed = append(failed, semaphore)
		}
	}
	return failed
}

// Granted are all quotas, and a number that grows with each change. They are not to be changed.
func (c *Caps) Granted() (map[queue.QuotaRef]queue.Quota, uint64) {
	q := c.now.Load()
	return q.of, q.version
}
