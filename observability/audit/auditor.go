package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/bus/events"
	"github.com/longshore-run/longshore/messages/bus/runlogs"
)

// Defaults and limits of an Auditor.
const (
	defaultCommit  = 2 * time.Second
	defaultSweep   = time.Hour
	defaultSettled = 10 * time.Minute
	defaultPause   = 2 * time.Second
	comparers      = 4
	maxWaiting     = 1000    // runs to be compared; beyond it the feed waits
	maxBuffered    = 4 << 20 // bytes
	maxReported    = 10_000  // findings of sweeps that are not reported again
	livePending    = 4096    // messages that follow an end which happened a moment ago
	retireEvery    = time.Hour
)

// Config is fixed for the life of an Auditor.
type Config struct {
	Store     *Store
	Bus       *bus.Bus
	Sealer    runlogs.Sealer // of the logs, and of the bodies that the audit keeps; default: none
	Copier    *Copier        // of a second place; default: none
	Version   string         // of the program; it stands in the audit
	Retention time.Duration  // how long entries are kept; default: forever
	Commit    time.Duration  // how long an entry waits for its head at most; default 2 s
	Sweep     time.Duration  // between looks at runs that do not end; default 1 h
	Settled   time.Duration  // how long a run must have been quiet for such a look; default 10 min
	Pause     time.Duration  // before events that are missing are looked for again; default 2 s
	Log       *slog.Logger   // default: discard
}

// Auditor reads all of EVENTS into a Store, each message once, and compares the runs that end with their logs.
type Auditor struct {
	cfg      Config
	compare  comparer
	seen     seen
	waiting  []*job // in the order of the runs' ends
	jobs     chan *job
	swept    chan *Comparison
	reported map[messages.Ref]*Comparison

	committed                                    atomic.Pointer[snapshot] // the newest; with a Copier
	lag, position, uncompared, findings, entries atomic.Uint64
}

// job is a run that has ended.
type job struct {
	run      messages.Ref
	position events.Position
	seen     map[uint64]Hash // of its events, as the feed had them
	live     bool            // it has just ended
	done     chan struct{}
	result   *Comparison // once it is done; nil: not known
}

// New returns an Auditor. The caller must call Run exactly once.
func New(cfg Config) *Auditor {
	cfg.Commit, cfg.Sweep = cmp.Or(cfg.Commit, defaultCommit), cmp.Or(cfg.Sweep, defaultSweep)
	cfg.Settled, cfg.Pause = cmp.Or(cfg.Settled, defaultSettled), cmp.Or(cfg.Pause, defaultPause)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	a := &Auditor{
		cfg: cfg, compare: newComparer(&cfg), jobs: make(chan *job, maxWaiting), swept: make(chan *Comparison),
		reported: map[messages.Ref]*Comparison{},
	}
	a.position.Store(cfg.Store.Position().Sum())
	return a
}

// Lag is how many messages of EVENTS are not read yet, as of the last one.
func (a *Auditor) Lag() uint64 { return a.lag.Load() }

// Position is up to where EVENTS is in the audit for good: the sum of the sequences, of several streams.
func (a *Auditor) Position() uint64 { return a.position.Load() }

// Uncompared is how many runs that ended wait to be compared.
func (a *Auditor) Uncompared() uint64 { return a.uncompared.Load() }

// Findings is how many runs were not as their logs, since the start.
func (a *Auditor) Findings() uint64 { return a.findings.Load() }

// Entries is how many messages were read since the start.
func (a *Auditor) Entries() uint64 { return a.entries.Load() }

// Run audits until ctx ends, and commits what it has. An error of the folder or of NATS ends it; started again it continues
// where it was.
func (a *Auditor) Run(ctx context.Context) error {
	if err := a.cfg.Store.Start(map[string]string{"version": a.cfg.Version}); err != nil {
		return err
	}
	if err := a.commit(); err != nil {
		return err
	}
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := a.compare.recent.Run(inner); err != nil { // logs are asked for then
			a.cfg.Log.WarnContext(inner, "follow the logs of runs", "err", err)
		}
		return nil
	})
	for range comparers {
		group.Go(func() error { a.work(inner); return nil })
	}
	group.Go(func() error { a.keepSweeping(inner); return nil })
	group.Go(func() error { return a.read(inner) })
	if a.cfg.Copier != nil {
		group.Go(func() error { a.cfg.Copier.run(inner, &a.committed); return nil })
	}
	err := group.Wait()
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		err = nil
	}
	if err := errors.Join(err, a.commit()); err != nil || a.cfg.Copier == nil {
		return err
	}
	a.cfg.Copier.finish(ctx, a.committed.Load())
	return nil
}

// read is the loop that owns the store.
func (a *Auditor) read(ctx context.Context) error {
	s := a.cfg.Store
	committed, retired := time.Now(), time.Time{}
	from := events.New(a.cfg.Bus)
	if err := s.in(from.Streams()); err != nil {
		return err
	}
	at := make(events.Position, from.Streams()) // of what was read
	for i := range at {
		at[i] = min(s.Position().At(i), s.ComparedTo().At(i))
	}
	began := slices.Clone(at) // 0 once something of the stream has come
	for f, err := range from.Feed(ctx, slices.Clone(at)) {
		if err != nil {
			if errors.Is(err, bus.ErrAhead) {
				return fmt.Errorf("%w: this folder is the audit of another stream; start a new folder", err)
			}
			return err
		}
		come := f.Position > 0
		if come {
			i := f.Stream
			if was, held := began[i], s.Position().At(i); was > 0 && was < held && f.Seq > was+1 {
				s.Uncompared(was+1, min(f.Seq-1, held))
			}
			began[i], at[i] = 0, f.Seq
			if err := a.take(ctx, &f, at); err != nil {
				return err
			}
		}
		a.lag.Store(f.Pending)
		var done events.Position
		if come {
			done = at
		}
		if err := a.settle(ctx, done); err != nil {
			return err
		}
		if now := time.Now(); !come || s.Buffered() > maxBuffered || now.Sub(committed) >= a.cfg.Commit {
			committed = now
			if err := a.commit(); err != nil {
				return err
			}
		}
		if now := time.Now(); a.cfg.Retention > 0 && now.Sub(retired) >= retireEvery {
			retired = now
			if err := a.retire(ctx, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// take reads one message, at a position. What is in the store already is read again only for the runs that were not compared.
func (a *Auditor) take(ctx context.Context, f *events.Fed, at events.Position) error {
	s := a.cfg.Store
	m := Message{Stream: f.Stream, Seq: f.Seq, At: f.Time, Subject: f.Subject, Body: f.Data}
	var e messages.Event // the last of a bundle: all are of one run, and none is its end
	ok := false
	var text []byte
	for e, text = range f.Events() {
		ok, m.Run = true, e.Ref()
		if e.Subject != messages.NoRun {
			a.seen.add(m.Run, e.Number(), text)
		}
	}
	if f.Seq > s.Position().At(f.Stream) {
		tenant := tenantToken(f.Subject)
		if a.cfg.Sealer != nil && a.cfg.Sealer.On() && (ok && holdsData(&e) || !ok && s.tenants[tenant] != nil) {
			m.seal = func(entry *Entry) error { return entry.seal(ctx, a.cfg.Sealer, tenant) }
		}
		if err := s.Message(m, tenant); err != nil {
			return err
		}
		a.entries.Add(1)
	}
	if !ok || e.Name() != messages.EventRunFinished || f.Seq <= s.ComparedTo().At(f.Stream) {
		return nil
	}
	j := &job{run: m.Run, position: slices.Clone(at), seen: a.seen.take(m.Run), live: f.Pending < livePending, done: make(chan struct{})}
	if len(a.waiting) >= maxWaiting {
		select {
		case <-a.waiting[0].done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := a.settle(ctx, nil); err != nil {
			return err
		}
	}
	a.waiting = append(a.waiting, j)
	a.jobs <- j // it has room for all that wait
	return nil
}

// settle takes what was compared, in order, and what sweeps have found. Position is that of the message before; empty: none.
func (a *Auditor) settle(ctx context.Context, position events.Position) error {
	for len(a.waiting) > 0 {
		select {
		case <-a.waiting[0].done:
		default:
			a.uncompared.Store(uint64(len(a.waiting)))
			return a.findSwept(ctx)
		}
		j := a.waiting[0]
		a.waiting = a.waiting[1:]
		if j.result == nil { // the auditor stops
			return context.Cause(ctx)
		}
		if err := a.record(ctx, j.result, j.position); err != nil {
			return err
		}
	}
	a.uncompared.Store(0)
	a.cfg.Store.comparedTo(position)
	return a.findSwept(ctx)
}

func (a *Auditor) record(ctx context.Context, c *Comparison, position events.Position) error {
	if c.Outcome != OutcomeComplete {
		a.findings.Add(1)
		a.cfg.Log.WarnContext(ctx, "the events of a run are not those of its log", "task_id", c.run.Run, "tenant", c.run.Tenant,
			"outcome", string(c.Outcome), "missing", c.Missing, "altered", c.Altered, "extra", c.Extra, "reason", c.Reason)
	}
	return a.cfg.Store.Compared(c, position)
}

func (a *Auditor) findSwept(ctx context.Context) error {
	for {
		select {
		case c := <-a.swept:
			if c.same(a.reported[c.run]) {
				continue
			}
			if len(a.reported) >= maxReported {
				clear(a.reported)
			}
			a.reported[c.run] = c
			if err := a.record(ctx, c, nil); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

func (a *Auditor) commit() error {
	if err := a.cfg.Store.Commit(); err != nil {
		return err
	}
	a.position.Store(a.cfg.Store.Position().Sum())
	if last := a.committed.Load(); a.cfg.Copier != nil && (last == nil || last.head != a.cfg.Store.heads.tail.N) {
		a.committed.Store(a.cfg.Store.snapshot())
	}
	return nil
}

func (a *Auditor) retire(ctx context.Context, now time.Time) error {
	n, err := a.cfg.Store.Retire(now.Add(-a.cfg.Retention))
	if err == nil && n > 0 {
		a.cfg.Log.InfoContext(ctx, "segments removed for their age", "count", n)
	}
	return err
}

// work compares runs until ctx ends. What NATS does not answer it asks again.
func (a *Auditor) work(ctx context.Context) {
	for {
		select {
		case j := <-a.jobs:
			for ctx.Err() == nil {
				c, err := a.compare.ended(ctx, j.run, j.seen, j.live)
				if err == nil {
					j.result = c
					break
				}
				if ctx.Err() == nil {
					a.cfg.Log.WarnContext(ctx, "compare a run", "task_id", j.run.Run, "tenant", j.run.Tenant, "err", err)
					_ = bus.Pause(ctx, a.cfg.Pause) // cut short by the end of ctx
				}
			}
			close(j.done)
		case <-ctx.Done():
			return
		}
	}
}

func (a *Auditor) keepSweeping(ctx context.Context) {
	ticker := time.NewTicker(a.cfg.Sweep)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			err := a.compare.sweep(ctx, a.cfg.Settled, func(c *Comparison) {
				select {
				case a.swept <- c:
				case <-ctx.Done():
				}
			})
			if err != nil && ctx.Err() == nil {
				a.cfg.Log.WarnContext(ctx, "sweep the runs", "err", err)
			}
		case <-ctx.Done():
			return
		}
	}
}
