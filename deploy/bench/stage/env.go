package stage

import (
	"context"
	"log/slog"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/deploy/fleet"
)

// Env is what a process of a measurement has from the one that started it.
type Env struct {
	Log *slog.Logger
	Get func(name string) string // a variable of its environment
}

// KeepHeap tunes the garbage collector of this process as the commands do, for a worker with so many slots, or a dispatcher.
func (e Env) KeepHeap(ctx context.Context, slots int) *measure.Background {
	return measure.InBackground(ctx, func(ctx context.Context) error {
		if e.Get("GOGC") == "" {
			fleet.KeepHeap(ctx, slots)
		}
		return nil
	})
}
