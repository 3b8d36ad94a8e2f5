package bus

import (
	"context"
	"fmt"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/runlog"
)

var _ runlog.Awaited = (*Bus)(nil).Awaited

// Awaited is a runlog.Awaited; the stream's leader answers.
func (b *Bus) Awaited(ctx context.Context, run messages.Ref) (bool, error) {
	if err := run.Check(); err != nil {
		return false, err
	}
	for _, filter := range []string{run.QueuedFilter(), "sched.*." + run.Tenant + "." + run.Run + ".>"} {
		_, ok, err := b.Get(ctx, StreamTasks, Lookup{Seq: 1, Next: filter})
		if err != nil {
			return false, fmt.Errorf("look for messages of %s: %w", run, err)
		}
		if ok {
			return true, nil
		}
	}
	return false, nil
}
