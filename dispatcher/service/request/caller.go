package request

import (
	"context"

	"github.com/longshore-run/longshore/messages/control"
)

type (
	callerKey struct{}
	traceKey  struct{}
)

// WithCaller keeps on whose behalf a request is made.
func WithCaller(ctx context.Context, c control.Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf is the caller of the request that ctx belongs to; empty if it is unknown.
func CallerOf(ctx context.Context) control.Caller {
	c, _ := ctx.Value(callerKey{}).(control.Caller)
	return c
}

// WithTrace keeps the trace context that a request came with: the value of its traceparent header.
func WithTrace(ctx context.Context, traceparent string) context.Context {
	return context.WithValue(ctx, traceKey{}, traceparent)
}

// TraceOf is the traceparent header of the request that ctx belongs to, unchecked; empty if it had none.
func TraceOf(ctx context.Context) string {
	s, _ := ctx.Value(traceKey{}).(string)
	return s
}
