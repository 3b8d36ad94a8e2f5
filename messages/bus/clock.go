package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// ClockConfig says how the clock of this machine is compared with the server's.
type ClockConfig struct {
	Here func() time.Time // the clock of this machine. Default time.Now
	Warn time.Duration    // a difference above this is logged. Default 1 s
	Most time.Duration    // a difference above this is an error of Check. Default: none is
	Log  *slog.Logger     // default: that of the Bus
}

const (
	defaultSkewWarn = time.Second
	clockSamples    = 3 // the tightest of them counts
)

// Clock is the time of the NATS server: that of this machine less the difference that was measured last. Deadlines and
// expiries that several machines judge go by it. A difference too small to be measured is none, so that a machine whose
// clock is right keeps its own. Safe for concurrent use.
type Clock struct {
	cfg   ClockConfig
	bus   *Bus
	ahead atomic.Int64
	state atomic.Int32 // clockRight, clockOff or clockOver
}

const (
	clockRight int32 = iota
	clockOff         // by more than ClockConfig.Warn
	clockOver        // by more than ClockConfig.Most
)

// NewClock returns a Clock that is this machine's until it is measured.
func (b *Bus) NewClock(cfg ClockConfig) *Clock {
	if cfg.Here == nil {
		cfg.Here = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = b.log
	}
	cfg.Warn = cmp.Or(cfg.Warn, defaultSkewWarn)
	return &Clock{cfg: cfg, bus: b}
}

// Now is the time as the wire has it, so that a value and its copy that travelled are equal.
func (c *Clock) Now() time.Time {
	return c.cfg.Here().Add(-c.Ahead()).UTC().Truncate(time.Microsecond)
}

// Ahead is by how much the clock of this machine is ahead of the server's; negative when it is behind.
func (c *Clock) Ahead() time.Duration { return time.Duration(c.ahead.Load()) }

// Check is an error while the clocks differ by more than ClockConfig.Most.
func (c *Clock) Check() error {
	if c.cfg.Most == 0 || c.Ahead().Abs() <= c.cfg.Most {
		return nil
	}
	return fmt.Errorf("the clock of this machine is %s the NATS server's, more than LONGSHORE_MAX_CLOCK_SKEW (%v): no new work is taken "+
		"until chrony, ntpd or systemd-timesyncd has set it", c.differs(), c.cfg.Most)
}

func (c *Clock) differs() string {
	ahead := c.Ahead().Round(time.Millisecond)
	if ahead < 0 {
		return (-ahead).String() + " behind"
	}
	return ahead.String() + " ahead of"
}

// Measure compares the clocks, and logs when the difference has become too large, or is no longer.
func (c *Clock) Measure(ctx context.Context) error {
	low, high, err := c.sample(ctx)
	if err != nil {
		return fmt.Errorf("ask NATS for its time: %w", err)
	}
	for range clockSamples - 1 {
		l, h, err := c.sample(ctx)
		if err == nil && h-l < high-low {
			low, high = l, h
		}
	}
	// The nearest to what was known that fits what was measured.
	c.ahead.Store(int64(min(max(c.Ahead(), low), high)))
	c.judge(ctx)
	return nil
}

// sample bounds the difference of the clocks by one request: the server told its time between two readings of ours.
func (c *Clock) sample(ctx context.Context) (low, high time.Duration, err error) {
	var info struct {
		Time time.Time `json:"ts"`
	}
	before := c.cfg.Here()
	ctx, cancel := context.WithTimeout(ctx, c.bus.answer)
	defer cancel()
	// A worker and a dispatcher may ask this, and it is cheap.
	if err := c.bus.ask(ctx, "CONSUMER.INFO."+c.bus.Partitions(StreamTasks).Name(0)+"."+ConsumerWorkers, nil, &info); err != nil {
		return 0, 0, err
	}
	if info.Time.IsZero() {
		return 0, 0, errors.New("the answer has no time")
	}
	return before.Sub(info.Time), c.cfg.Here().Sub(info.Time), nil
}

func (c *Clock) judge(ctx context.Context) {
	now := clockRight
	switch {
	case c.Check() != nil:
		now = clockOver
	case c.Ahead().Abs() > c.cfg.Warn:
		now = clockOff
	}
	if c.state.Swap(now) == now {
		return
	}
	switch now {
	case clockOver:
		c.cfg.Log.ErrorContext(ctx, "judge the clock", "err", c.Check())
	case clockOff:
		c.cfg.Log.WarnContext(ctx, "the clock of this machine differs from the NATS server's: deadlines and expiries go by the server's", "ahead", c.Ahead())
	default:
		c.cfg.Log.InfoContext(ctx, "the clock of this machine agrees with the NATS server's again")
	}
}

// Keep measures now and then until ctx ends, and calls after each time unless that is nil.
func (c *Clock) Keep(ctx context.Context, every time.Duration, after func()) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if err := c.Measure(ctx); err != nil && ctx.Err() == nil {
			c.cfg.Log.DebugContext(ctx, "measure the clock", "err", err)
		}
		if after != nil {
			after()
		}
	}
}
