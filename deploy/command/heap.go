package command

import (
	"cmp"
	"context"
	"runtime/debug"

	"github.com/longshore-run/longshore/deploy/fleet"
	"github.com/longshore-run/longshore/deploy/hostmemory"
	"github.com/longshore-run/longshore/deploy/settings"
)

// keepHeap keeps the heap below the memory limit, and tunes the garbage collector until stop is called, unless the operator set GOMEMLIMIT
// and GOGC.
func (p *Process) keepHeap(ctx context.Context, s settings.MemoryLimit, slots int) (stop func()) {
	before := debug.SetMemoryLimit(-1) // which only reads it
	if p.env("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(cmp.Or(s.Bytes, hostmemory.Limit()))
	}
	if p.env("GOGC") != "" {
		return func() { debug.SetMemoryLimit(before) }
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		fleet.KeepHeap(ctx, slots)
	}()
	return func() {
		cancel()
		<-done
		debug.SetMemoryLimit(before)
	}
}
