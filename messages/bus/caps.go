package bus

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/runlog"
)

// DefaultCapsRefresh is how often Caps looks whether quotas changed.
const DefaultCapsRefresh = 2 * time.Second

// Caps knows the caps and pauses that quotas grant, without a request for each run. Safe for concurrent use.
type Caps struct {
	bus   *Bus
	every time.Duration
	now   atomic.Pointer[quotasAt]
}

type quotasAt struct {
	revision uint64 // of the newest quota
	of       map[messages.QuotaRef]messages.Quota
}

var _ runlog.Caps = (*Caps)(nil)

// NewCaps returns caps that know of no quota before Load or Run. Every is how often Run looks; 0: DefaultCapsRefresh.
func (b *Bus) NewCaps(every time.Duration) *Caps {
	if every == 0 {
		every = DefaultCapsRefresh
	}
	c := &Caps{bus: b, every: every}
	c.now.Store(&quotasAt{})
	return c
}

// Cap implements runlog.Caps.
func (c *Caps) Cap(line string) int { return c.now.Load().cap(line) }

func (q *quotasAt) cap(line string) int {
	of, ok := messages.QuotaOfLine(line)
	if !ok {
		return runlog.NoCap
	}
	granted := q.of[of]
	switch {
	case messages.IsPausedLine(line) && granted.Paused != nil:
		return 0
	case messages.IsPausedLine(line) || granted.MaxRunning == 0:
		return runlog.NoCap
	default:
		return granted.MaxRunning
	}
}

// Load reads the quotas if any changed, and returns the lines that have more places than before.
func (c *Caps) Load(ctx context.Context) (wider []string, err error) {
	m, _, err := c.bus.get(ctx, streamQuotas, lookup{Last: quotasPrefix + ">"})
	if err != nil {
		return nil, fmt.Errorf("look for quotas: %w", err)
	}
	old := c.now.Load()
	if m.seq == old.revision {
		return nil, nil
	}
	all, err := c.bus.Quotas(ctx)
	if err != nil {
		return nil, err
	}
	now := &quotasAt{m.seq, all}
	c.now.Store(now)
	for of := range old.of {
		for _, line := range []string{string(of.Kind) + "." + of.Name, messages.PausedLine(of)} {
			before, after := old.cap(line), now.cap(line)
			if before != runlog.NoCap && (after == runlog.NoCap || after > before) {
				wider = append(wider, line)
			}
		}
	}
	return wider, nil
}

// Run keeps the caps up to date until ctx ends. It calls look for each line that has more places than before.
func (c *Caps) Run(ctx context.Context, look func(ctx context.Context, line string) error) {
	ticker := time.NewTicker(c.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		wider, err := c.Load(ctx)
		if err != nil && ctx.Err() == nil {
			c.bus.log.WarnContext(ctx, "caps are not up to date", "err", err)
		}
		for _, line := range wider {
			if err := look(ctx, line); err != nil && ctx.Err() == nil {
				c.bus.log.WarnContext(ctx, "give the places of a line", "line", line, "err", err)
			}
		}
	}
}
