package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/messages"
)

const (
	consumerRetention = "retention"
	// How long the end that is due next stays unlooked at; a shorter retention takes effect then.
	maxRetentionWait = time.Hour
)

// Retain purges each run when its end is older than keep, until ctx ends. The stream of events is the delay line: one
// consumer, shared by all dispatchers, waits at the oldest end that is not purged yet. An end that is purged twice,
// after a crash, finds nothing.
func (b *Bus) Retain(ctx context.Context, keep time.Duration) error {
	p := puller{
		bus: b, stream: StreamEvents, most: 1,
		config: jetstream.ConsumerConfig{
			Durable: consumerRetention, FilterSubject: "events.*.*." + messages.EventRunFinished,
			AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 1, MaxDeliver: -1,
		},
		take: func(ctx context.Context, msgs <-chan jetstream.Msg) bool {
			for m := range msgs {
				b.retire(ctx, m, keep)
			}
			return true
		},
	}
	return p.run(ctx)
}

// retire purges the run of an end that is due, and puts an end that is not due back.
func (b *Bus) retire(ctx context.Context, m jetstream.Msg, keep time.Duration) {
	meta, err := m.Metadata()
	if err != nil {
		return
	}
	if left := time.Until(meta.Timestamp.Add(keep)); left > 0 {
		if err := m.NakWithDelay(min(left, maxRetentionWait)); err != nil {
			b.log.DebugContext(ctx, "wait for the next run to purge", "err", err)
		}
		return
	}
	var e messages.Event
	if json.Unmarshal(m.Data(), &e) != nil || m.Subject() != e.Ref().EventSubject(messages.EventRunFinished) || e.Ref().Check() != nil {
		b.skipped.Add(1)
	} else if err := b.Purge(ctx, e.Ref()); err != nil {
		b.log.WarnContext(ctx, "purge a run", "task_id", e.Subject, "err", err)
		return // it comes again
	}
	if err := m.DoubleAck(ctx); err != nil {
		b.log.DebugContext(ctx, "ack a purge", "err", err)
	}
}

// Purge removes all of a run but its events: what is queued or scheduled, its blobs, its log entries and, last, its log. Its id
// must not be used again before its events have expired: watchers would see two runs as one.
func (b *Bus) Purge(ctx context.Context, run messages.Ref) error {
	if err := run.Check(); err != nil {
		return err //nolint:wrapcheck // it names the field
	}
	for _, p := range []struct{ stream, subject string }{
		{StreamTasks, run.QueuedFilter()},
		{StreamTasks, "sched.*." + run.Tenant + "." + run.Run + ".>"},
		{StreamBlobs, "blobs." + run.Tenant + "." + run.Run + ".>"},
		{StreamLogs, run.LogEntriesSubject()},
		{StreamRuns, run.LogSubject()},
	} {
		if err := b.purge(ctx, p.stream, p.subject); err != nil {
			return fmt.Errorf("purge %s of %s: %w", p.subject, p.stream, err)
		}
	}
	return nil
}
