package runlogs

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/queue"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/strict"
)

const (
	spendAgain = bus.SpendWindow - time.Minute

	spentTTL   = time.Second // what was read counts as current
	maxTenants = 4096        // bounds the caches by tenant, which then begin anew
)

func spendSubject(tenant string, at time.Time) string {
	return "spend." + tenant + "." + at.UTC().Format("200601.02")
}

var _ runlog.Ledger = (*outbox)(nil)

// Spend implements runlog.Ledger: the sum is published as events are, and settled with them. Published again within ten
// minutes it counts once; an entry older than nine is taken for counted.
func (o *outbox) Spend(ctx context.Context, seq uint64, at time.Time, nanos int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil || nanos <= 0 || time.Since(at) > spendAgain {
		return
	}
	if err := o.run.Check(); err != nil {
		o.err = err
		return
	}
	o.add(ctx, draft{before: o.given, cost: letter{
		subject: spendSubject(o.run.Tenant, at), id: o.ids + "spend." + strconv.FormatUint(seq, 10),
		increment: "+" + strconv.FormatInt(nanos, 10),
	}})
	o.store.spent.add(o.run.Tenant, at, nanos)
}

// Spent is what the model calls of a tenant have cost in the day and month of now, in US dollars, at most a second ago and
// what this process spent since.
func (st *Store) Spent(ctx context.Context, tenant string, now time.Time) (today, month float64, err error) {
	if !strict.ValidToken(tenant) {
		return 0, 0, &messages.FieldError{Field: "tenant", Reason: "must be a token"}
	}
	if s, ok := st.spent.get(tenant, now); ok {
		return s.dollars()
	}
	got, err, _ := st.spent.reading.Do(tenant+spendSubject("", now), func() (any, error) {
		began := time.Now()
		s, err := st.readSpent(context.WithoutCancel(ctx), tenant, now)
		if err == nil {
			st.spent.put(tenant, s, began)
		}
		return s, err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("read what tenant %s has spent: %w", tenant, err)
	}
	s, _ := got.(spent)
	return s.dollars()
}

// readSpent adds up the days of the month, each of which is one message.
func (st *Store) readSpent(ctx context.Context, tenant string, now time.Time) (spent, error) {
	s := spent{day: spendSubject(tenant, now)}
	month := s.day[:strings.LastIndexByte(s.day, '.')+1]
	for at := uint64(0); ; {
		m, ok, err := st.bus.Stream(bus.StreamSpend).Get(ctx, bus.Lookup{Seq: at + 1, Next: month + "*"})
		if err != nil || !ok {
			return s, err
		}
		n, err := bus.Counted(m.Data)
		if err != nil {
			return s, err
		}
		if s.month += n; m.Subject == s.day {
			s.today = n
		}
		at = m.Seq
	}
}

// spent is what a tenant has spent, in nano US dollars.
type spent struct {
	day          string // the subject of today
	today, month int64
	until        time.Time
	added        time.Time // when this process published last
}

func (s spent) dollars() (today, month float64, err error) {
	return float64(s.today) * queue.Nano, float64(s.month) * queue.Nano, nil
}

// spentCache holds what was read lately, and what this process has spent since.
type spentCache struct {
	reading singleflight.Group

	mu       sync.Mutex
	byTenant map[string]spent
}

func (c *spentCache) get(tenant string, now time.Time) (spent, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.byTenant[tenant]
	return s, ok && time.Now().Before(s.until) && s.day == spendSubject(tenant, now)
}

// put takes what was read. It need not have seen what this process published a moment ago: a sum only grows.
func (c *spentCache) put(tenant string, s spent, began time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byTenant == nil || len(c.byTenant) >= maxTenants {
		c.byTenant = map[string]spent{}
	}
	if old := c.byTenant[tenant]; old.day == s.day && began.Sub(old.added) < spentTTL {
		s.today, s.month, s.added = max(s.today, old.today), max(s.month, old.month), old.added
	}
	s.until = began.Add(spentTTL)
	c.byTenant[tenant] = s
}

// add counts what is published now, so that the next call of the same run sees it.
func (c *spentCache) add(tenant string, at time.Time, nanos int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.byTenant[tenant]
	if !ok {
		return // no reader
	}
	s.month += nanos
	if s.day == spendSubject(tenant, at) {
		s.today += nanos
	}
	s.added = time.Now()
	c.byTenant[tenant] = s
}
