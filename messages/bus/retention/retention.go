// Package retention purges runs after their time.
package retention

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/runlog"
)

const (
	consumerRetention = "retention"
	// How long the ends that are due next stay unlooked at; a shorter retention takes effect then.
	maxRetentionWait = time.Hour
	// How many ends of a stream are in hand at once, of all dispatchers together: those that are being purged, and the
	// next that are not due. Each of the latter is delivered again every maxRetentionWait.
	endsHeld = 512
	// How many runs one dispatcher purges at once. Each waits for the answer to one request before it makes the next, so
	// purges take no more of a busy server than what it answers.
	purgesAtOnce = 64
)

// Retention purges runs whose time is over. It counts what it purges, so a process shares one. Safe for concurrent use.
type Retention struct {
	bus         *bus.Bus
	log         runlog.Log
	keep        atomic.Int64  // how long it keeps runs; 0: it does not run
	due, missed atomic.Uint64 // runs that it has purged
}

// New returns the retention of the runs that a bus holds. The logs say which have ended.
func New(b *bus.Bus, log runlog.Log) *Retention { return &Retention{bus: b, log: log} }

// Purged is how many runs this process has removed after their retention, and how many of them the second look found.
func (rt *Retention) Purged() (all, missed uint64) {
	missed = rt.missed.Load()
	return rt.due.Load() + missed, missed
}

// Retain purges each run when its end is older than keep, until ctx ends. The stream of events is the delay line: one
// consumer, shared by all dispatchers, has the oldest ends that are not purged yet. An end that is purged twice, after a
// crash, finds nothing. A run whose end is no longer among the events is found by a second look at the oldest logs.
func (rt *Retention) Retain(ctx context.Context, keep time.Duration) error {
	rt.keep.Store(int64(keep))
	ends := rt.bus.Partitions(bus.StreamEvents)
	p := bus.Puller{
		Bus: rt.bus, Most: endsHeld,
		Config: jetstream.ConsumerConfig{
			Durable: consumerRetention, FilterSubject: "events.*.*." + messages.EventRunFinished,
			AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: endsHeld, MaxDeliver: -1,
		},
		Take: func(ctx context.Context, msgs <-chan jetstream.Msg) bool {
			var purging errgroup.Group
			purging.SetLimit(max(1, purgesAtOnce/len(ends.Names())))
			for m := range msgs {
				purging.Go(func() error {
					rt.retire(ctx, m, keep)
					return nil
				})
			}
			_ = purging.Wait() // none returns one
			return true
		},
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.RunAcross(ctx, ends) })
	group.Go(func() error { rt.keepLookingForMissed(ctx, keep); return nil })
	return group.Wait()
}

// retire purges the run of an end that is due, and puts an end that is not due back.
func (rt *Retention) retire(ctx context.Context, m jetstream.Msg, keep time.Duration) {
	meta, err := m.Metadata()
	if err != nil {
		return
	}
	if left := time.Until(meta.Timestamp.Add(keep)); left > 0 {
		if err := m.NakWithDelay(min(left, maxRetentionWait)); err != nil {
			rt.bus.Log().DebugContext(ctx, "wait for the next run to purge", "err", err)
		}
		return
	}
	var e messages.Event
	if json.Unmarshal(m.Data(), &e) != nil || m.Subject() != e.Ref().EventSubject(messages.EventRunFinished) || e.Ref().Check() != nil ||
		!rt.bus.Partitions(bus.StreamEvents).Owns(meta.Stream, e.Ref()) {
		rt.bus.Foreign()
	} else if err := rt.Purge(ctx, e.Ref()); err != nil {
		if ctx.Err() == nil {
			rt.bus.Log().WarnContext(ctx, "purge a run", "task_id", e.Subject, "err", err)
		}
		return // it comes again
	} else {
		rt.due.Add(1)
	}
	if err := m.Ack(); err != nil { // if it is lost, the end comes again and finds nothing
		rt.bus.Log().DebugContext(ctx, "ack a purge", "err", err)
	}
}

// Purge removes all of a run but its events: what is scheduled or queued, its blobs, what it refers to of files, its log entries and, last, its log. Its id
// must not be used again before its events have expired: watchers would see two runs as one.
func (rt *Retention) Purge(ctx context.Context, run messages.Ref) error {
	if err := run.Check(); err != nil {
		return err
	}
	for _, p := range []struct {
		stream, subject string
		rare            bool // most runs leave nothing there, and a look costs less than a purge that wakes all lanes
	}{
		// In this order: what fires in between is seen as queued.
		{rt.bus.Partitions(bus.StreamTasks).NameOf(run), "sched.*." + run.Tenant + "." + run.Run + ".>", true},
		{rt.bus.Partitions(bus.StreamTasks).NameOf(run), run.QueuedFilter(), true},
		{bus.StreamBlobs, "blobs." + run.Tenant + "." + run.Run + ".>", false},
		{bus.StreamFiles, "files." + run.Tenant + ".ref." + run.Run + ".*", true},
		{bus.StreamLogs, run.LogEntriesSubject(), false},
		{rt.bus.Partitions(bus.StreamRuns).NameOf(run), run.LogSubject(), false},
	} {
		if p.rare {
			_, ok, err := rt.bus.Stream(p.stream).Get(ctx, bus.Lookup{Seq: 1, Next: p.subject})
			if err != nil {
				return fmt.Errorf("look for %s in %s: %w", p.subject, p.stream, err)
			}
			if ok && p.stream == bus.StreamFiles { // a task in the dead letters may be sent again, with the files that it names
				if _, ok, err = rt.bus.Stream(bus.StreamDead).Get(ctx, bus.Lookup{Seq: 1, Next: "dead." + run.Tenant + ".*." + run.Run}); err != nil {
					return fmt.Errorf("look for a dead letter of %s: %w", run, err)
				}
				ok = !ok
			}
			if !ok {
				continue
			}
		}
		if err := rt.bus.Stream(p.stream).Clear(ctx, p.subject); err != nil {
			return fmt.Errorf("purge %s of %s: %w", p.subject, p.stream, err)
		}
	}
	return nil
}

// Overdue is for how long the first run whose retention is over has waited to be purged; 0 when none waits, and while this
// process does not Retain.
func (rt *Retention) Overdue(ctx context.Context) (time.Duration, error) {
	keep := rt.keep.Load()
	if keep == 0 {
		return 0, nil
	}
	l, _, err := rt.bus.Partitions(bus.StreamEvents).Lag(ctx, consumerRetention)
	if err != nil || l.Oldest.IsZero() {
		return 0, err
	}
	return max(0, time.Since(l.Oldest)-time.Duration(keep)), nil
}
