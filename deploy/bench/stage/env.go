package stage

import (
	"context"
	"log/slog"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/deploy/bench/measure"
	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/messages/bus"
)

// Env is what a process of a measurement has from the one that started it.
type Env struct {
	Log *slog.Logger
	Get func(name string) string // a variable of its environment

	Replicas   int // of each stream: so many NATS servers. Default 1
	Partitions int // how many streams there are of each kind that can be divided. Default 1
}

// setup makes the streams.
func (e Env) setup(ctx context.Context, nc *nats.Conn) error {
	return bus.Setup(ctx, nc, bus.Streams{Replicas: e.Replicas, Partitions: e.Partitions})
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
