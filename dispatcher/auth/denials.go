package auth

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// Limits of what denials may cost, for each dispatcher.
const (
	denialsAtOnce   = 20
	denialEvery     = time.Second // one more; a list of runs reads these events too
	denialsWaiting  = 64          // for the stream
	summaryEvery    = 10 * time.Second
	announceTimeout = 5 * time.Second
)

// Announce stores an event about no run.
type Announce func(ctx context.Context, tenant, name string, data any) error

// Denials tells the world of attempts that were refused: of twenty at once and then one a second, and of how many
// there were beyond.
type Denials struct {
	announce Announce
	log      *slog.Logger
	waiting  chan denial
	omitted  atomic.Uint64 // without an event yet
	total    atomic.Uint64

	mu    sync.Mutex
	spent time.Time // when all that was reported is paid for
}

type denial struct {
	tenant string
	data   control.AuthDenied
}

// NewDenials returns Denials. The caller must call Run.
func NewDenials(announce Announce, log *slog.Logger) *Denials {
	return &Denials{announce: announce, log: log, waiting: make(chan denial, denialsWaiting)}
}

// Total is how many attempts were refused.
func (d *Denials) Total() uint64 { return d.total.Load() }

// Tell announces an attempt for a tenant. It never waits: what exceeds the rate is counted, and reported later as a number.
func (d *Denials) Tell(tenant string, what control.AuthDenied) {
	d.total.Add(1)
	if !d.within(time.Now()) {
		d.omitted.Add(1)
		return
	}
	select {
	case d.waiting <- denial{tenant, what}:
	default:
		d.omitted.Add(1)
	}
}

func (d *Denials) within(now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.spent.Before(now) {
		d.spent = now
	}
	if d.spent.Sub(now) > (denialsAtOnce-1)*denialEvery {
		return false
	}
	d.spent = d.spent.Add(denialEvery)
	return true
}

// Run announces until ctx ends, and then what is left.
func (d *Denials) Run(ctx context.Context) error {
	ticker := time.NewTicker(summaryEvery)
	defer ticker.Stop()
	for {
		select {
		case one := <-d.waiting:
			d.store(ctx, one)
		case <-ticker.C:
			d.summary(ctx)
		case <-ctx.Done():
			d.rest(context.WithoutCancel(ctx))
			return nil
		}
	}
}

// rest announces what is left, within the time of one.
func (d *Denials) rest(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	for {
		select {
		case one := <-d.waiting:
			d.store(ctx, one)
		default:
			d.summary(ctx)
			return
		}
	}
}

func (d *Denials) summary(ctx context.Context) {
	n := d.omitted.Swap(0)
	if n == 0 {
		return
	}
	d.store(ctx, denial{messages.DefaultTenant, control.AuthDenied{
		Code: messages.CodeRateLimited, Reason: "more attempts were refused than events are made for", Omitted: n,
	}})
}

func (d *Denials) store(ctx context.Context, one denial) {
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	a := one.data
	d.log.WarnContext(ctx, "access denied", "tenant", one.tenant, "code", a.Code, "reason", a.Reason, "operation", a.Operation,
		"who", a.Who, "remote", a.Remote, "omitted", a.Omitted)
	if err := d.announce(ctx, one.tenant, control.EventAuthDenied, a); err != nil {
		d.omitted.Add(max(1, a.Omitted)) // reported with the next ones
		d.log.WarnContext(ctx, "announce a denial", "err", err)
	}
}
