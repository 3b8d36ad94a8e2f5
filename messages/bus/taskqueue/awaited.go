package taskqueue

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/bus"
	"github.com/longshore-run/longshore/messages/runlog"
)

var _ runlog.Awaited = (*Queue)(nil).Awaited

// Awaited is a runlog.Awaited; the stream's leader answers.
func (tq *Queue) Awaited(ctx context.Context, run messages.Ref) (bool, error) {
	if err := run.Check(); err != nil {
		return false, err
	}
	for _, filter := range []string{run.QueuedFilter(), "sched.*." + run.Tenant + "." + run.Run + ".>"} {
		_, ok, err := tq.tasks().Of(run).Get(ctx, bus.Lookup{Seq: 1, Next: filter})
		if err != nil {
			return false, fmt.Errorf("look for messages of %s: %w", run, err)
		}
		if ok {
			return true, nil
		}
	}
	return false, nil
}
