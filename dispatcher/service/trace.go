package service

import (
	"context"

	"github.com/nats-io/nats.go/micro"

	"github.com/longshore-run/longshore/messages"
)

type traceKey struct{}

// withTrace keeps the trace context that a request came with.
func withTrace(ctx context.Context, req micro.Request) context.Context {
	return context.WithValue(ctx, traceKey{}, req.Headers().Get(messages.HeaderTraceparent))
}

// traceOf is the header of the request that ctx is of, as it came.
func traceOf(ctx context.Context) string {
	s, _ := ctx.Value(traceKey{}).(string)
	return s
}
