package taskqueue

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/strict"
)

// QueuedTasks yields the tasks of a tenant that were stored in the queue after a sequence, or since a time if that is not
// zero, oldest first; with delayed those that wait for their time instead. Of those stored a moment ago the newest may be
// missing. What a worker has in hand is among them. An error ends it.
func (tq *Queue) QueuedTasks(ctx context.Context, tenant string, delayed bool, after uint64, since time.Time) iter.Seq2[Queued, error] {
	return func(yield func(Queued, error) bool) {
		if !strict.ValidToken(tenant) {
			yield(Queued{}, &messages.FieldError{Field: "tenant", Reason: "must be a token"})
			return
		}
		p := bus.Page{Seq: after + 1, Next: "lanes.*.*." + tenant + ".*", Batch: bus.FirstPage, Bytes: bus.PageBytes}
		if delayed {
			p.Next = "sched.task." + tenant + ".*.start"
		}
		if after == 0 && !since.IsZero() {
			p.Seq, p.Since = 0, bus.StartTime(since)
		}
		for m, err := range tq.bus.Stream(bus.StreamTasks).ScanPages(ctx, p) {
			if err != nil {
				yield(Queued{}, fmt.Errorf("read the queue of tenant %s: %w", tenant, err))
				return
			}
			q, ok := Queued{Subject: m.Subject, Body: m.Data, At: m.Time, Seq: m.Seq}, true
			if delayed {
				q, ok, err = delayedOf(m)
			}
			if err != nil || !ok {
				tq.bus.Foreign()
				continue
			}
			if !yield(q, nil) {
				return
			}
		}
	}
}
