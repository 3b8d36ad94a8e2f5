package request

import "context"

// Idler lets a request wait without being in the way of others, and reports whether it did: there may be too many that wait already. Wait
// must return soon after stop is closed.
type Idler func(wait func(stop <-chan struct{})) bool

type idlerKey struct{}

// WithIdler keeps how a request waits.
func WithIdler(ctx context.Context, idle Idler) context.Context {
	return context.WithValue(ctx, idlerKey{}, idle)
}

// Idle has a request wait as its Idler does it. Without one it waits as it is.
func Idle(ctx context.Context, wait func(stop <-chan struct{})) bool {
	if idle, ok := ctx.Value(idlerKey{}).(Idler); ok {
		return idle(wait)
	}
	wait(nil)
	return true
}
