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

// QueuedTasks yields the tasks of a tenant that were stored in the queue after a position, or since a time if that is not
// zero, oldest first, one partition after the other; with delayed those that wait for their time instead. Of those stored a moment ago the newest may be
// missing. What a worker has in hand is among them. An error ends it.
func (tq *Queue) QueuedTasks(ctx context.Context, tenant string, delayed bool, after uint64, since time.Time) iter.Seq2[Queued, error] {
	return func(yield func(Queued, error) bool) {
		if !strict.ValidToken(tenant) {
			yield(Queued{}, &messages.FieldError{Field: "tenant", Reason: "must be a token"})
			return
		}
		p := bus.Page{Next: "lanes.*.*." + tenant + ".*", Batch: bus.FirstPage, Bytes: bus.PageBytes}
		if delayed {
			p.Next = "sched.task." + tenant + ".*.start"
		}
		first, seq := after>>positionBits, after&(1<<positionBits-1)
		for i := range tq.tasks().Number() {
			if uint64(i) < first {
				continue
			}
			p.Seq, p.Since = 1, nil
			if uint64(i) == first {
				p.Seq = seq + 1
			}
			if p.Seq == 1 && !since.IsZero() {
				p.Seq, p.Since = 0, bus.StartTime(since)
			}
			if !tq.queuedIn(ctx, i, p, delayed, yield) {
				return
			}
		}
	}
}

// queuedIn yields the tasks of a page in a partition; false: that is all.
func (tq *Queue) queuedIn(ctx context.Context, partition int, p bus.Page, delayed bool, yield func(Queued, error) bool) bool {
	for m, err := range tq.tasks().At(partition).ScanPages(ctx, p) {
		if err != nil {
			yield(Queued{}, fmt.Errorf("read the queue: %w", err))
			return false
		}
		q, ok := Queued{Subject: m.Subject, Body: m.Data, At: m.Time, Seq: m.Seq}, true
		if delayed {
			q, ok, err = delayedOf(m)
		}
		_, run, parsed := messages.ParseTaskSubject(q.Subject)
		if err != nil || !ok || parsed && !tq.tasks().Owns(tq.tasks().Name(partition), run) {
			tq.bus.Foreign()
			continue
		}
		q.Partition = partition
		if !yield(q, nil) {
			return false
		}
	}
	return true
}
