package taskqueue

import (
	"context"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
)

// known reports whether a run of this id has begun, as far back as events are kept. One that began some milliseconds ago may be
// missing; the stream's window of duplicates covers those.
func (tq *Queue) known(ctx context.Context, run messages.Ref) (bool, error) {
	return tq.bus.Partitions(bus.StreamEvents).Of(run).Has(ctx, run.EventSubject(messages.EventRunQueued))
}

// waits reports whether a task of this id waits for its time, as known does.
func (tq *Queue) waits(ctx context.Context, run messages.Ref) (bool, error) {
	return tq.tasks().Of(run).Has(ctx, run.DelaySubject())
}
