package command

import (
	"context"

	"github.com/longshore-run/longshore/deploy/fleet"
)

// keepHeap tunes the garbage collector until stop is called, unless the operator set GOGC.
func (p *Process) keepHeap(ctx context.Context, slots int) (stop func()) {
	if p.env("GOGC") != "" {
		return func() {}
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
	}
}
