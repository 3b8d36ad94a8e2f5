package retention

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/record"
)

const (
	// The longest time between two looks for logs that retention has missed.
	missedEvery = time.Hour
	// How much older than the oldest end that is not purged yet the end of a missed run must be: an end
	// is stored after its log has it.
	missedMargin = time.Minute
	// For headers of log entries that were not looked at yet.
	missedRoom = 1024
	// How long a look waits for the next entry before it gives up; the next look begins anew.
	missedWait = 10 * time.Second
)

// keepLookingForMissed looks for missed runs at the start and from then on until ctx ends: more often when runs are kept
// for less than missedEvery.
func (rt *Retention) keepLookingForMissed(ctx context.Context, keep time.Duration) {
	every := min(missedEvery, max(keep, time.Minute))
	for ctx.Err() == nil {
		if n, err := rt.PurgeMissed(ctx, keep); err != nil && ctx.Err() == nil {
			rt.bus.Log().WarnContext(ctx, "look for runs that retention has missed", "err", err)
		} else if n > 0 {
			rt.bus.Log().InfoContext(ctx, "purged runs whose end was no longer among the events", "runs", n)
		}
		_ = bus.Pause(ctx, every) // cut short by the end of ctx
	}
}

// PurgeMissed purges each run that ended before the oldest end that is still to be purged, and at least keep and a minute
// ago: its own end expired before its turn, or was never stored. It reads the headers of the entries that are older
// than that, which are those of runs that have not ended, unless there is something to purge.
func (rt *Retention) PurgeMissed(ctx context.Context, keep time.Duration) (purged int, err error) {
	l, ok, err := rt.bus.Partitions(bus.StreamEvents).Lag(ctx, consumerRetention)
	if err != nil || !ok { // without the consumer it is not known what is still to come
		return 0, err
	}
	before := time.Now().Add(-keep)
	if !l.Oldest.IsZero() && l.Oldest.Before(before) {
		before = l.Oldest
	}
	before = before.Add(-missedMargin)
	seen := map[string]bool{}
	for subject, err := range rt.storedBefore(ctx, before) {
		if err != nil {
			return purged, fmt.Errorf("read the oldest logs: %w", err)
		}
		if seen[subject] {
			continue
		}
		seen[subject] = true
		t := strings.Split(subject, ".")
		run := messages.Ref{Tenant: t[1], Run: t[2]}
		if run.Check() != nil {
			continue
		}
		ended, err := rt.endedBefore(ctx, run, before)
		if err == nil && ended {
			err = rt.Purge(ctx, run)
		}
		if err != nil {
			return purged, fmt.Errorf("purge %s: %w", run, err)
		}
		if ended {
			purged++
			rt.missed.Add(1)
		}
	}
	return purged, nil
}

// endedBefore reports whether a run has ended and its log's last entry was stored before a time by the server's clock.
func (rt *Retention) endedBefore(ctx context.Context, run messages.Ref, before time.Time) (bool, error) {
	m, ok, err := rt.bus.Partitions(bus.StreamRuns).Of(run).Get(ctx, bus.Lookup{Last: run.LogSubject()})
	if err != nil || !ok || !m.Time.Before(before) {
		return false, err
	}
	last, ok, err := rt.log.Last(ctx, run) // it knows which entries do not count
	if err != nil && !bus.Transient(err) {
		return false, nil // a log that cannot be read is not known to have ended; doctor tells of it
	}
	return ok && last.Head.Phase == record.PhaseFinished, err
}

// storedBefore yields the subjects of the log entries that were stored before a time, oldest first, each as often as it
// has entries. Their bodies stay with the server.
func (rt *Retention) storedBefore(ctx context.Context, before time.Time) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		logs := rt.bus.Partitions(bus.StreamRuns)
		for _, name := range logs.Names() {
			for subject, err := range rt.storedInBefore(ctx, name, before) {
				if t := strings.Split(subject, "."); err == nil && !logs.Owns(name, messages.Ref{Tenant: t[1], Run: t[2]}) {
					continue
				}
				if !yield(subject, err) {
					return
				}
			}
		}
	}
}

// storedInBefore is storedBefore of one stream of logs.
func (rt *Retention) storedInBefore(ctx context.Context, stream string, before time.Time) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		const filter = "runs.*.*.log"
		first, ok, err := rt.bus.Stream(stream).Get(ctx, bus.Lookup{Seq: 1, Next: filter})
		if err != nil {
			yield("", err)
			return
		}
		if !ok || !first.Time.Before(before) { // the common case costs one request
			return
		}
		t := &bus.Tail{Bus: rt.bus, Stream: stream, Filter: filter, Room: missedRoom}
		t.Start = jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy, HeadersOnly: true}
		defer t.Close()
		for {
			m, err := t.Next(ctx, time.Now().Add(missedWait))
			switch {
			case errors.Is(err, bus.ErrNothing):
				return
			case err != nil:
				yield("", err)
				return
			case !m.Time.Before(before) || !yield(m.Subject, nil) || m.Pending == 0:
				return
			}
		}
	}
}
