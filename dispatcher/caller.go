package dispatcher

import (
	"context"
	"encoding/json"

	"github.com/nats-io/nats.go"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// callerKey is where a context has its caller.
type callerKey struct{}

// WithCaller is a context whose requests say for whom they are made, for programs that ask in the name of others. Tasks that
// are submitted with it are by him, whatever they say themselves. Dispatchers do not believe a client that is bound to a tenant.
func WithCaller(ctx context.Context, c control.Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

func callerOf(ctx context.Context) control.Caller {
	c, _ := ctx.Value(callerKey{}).(control.Caller)
	return c
}

// signTask says in a task by whom it is, where that is known.
func signTask(ctx context.Context, t *messages.Task) {
	if who := callerOf(ctx).Who; who != "" {
		t.By = who
	}
}

// requestHeader is the header of a request; nil: none.
func requestHeader(ctx context.Context) nats.Header {
	c := callerOf(ctx)
	if c == (control.Caller{}) {
		return nil
	}
	text, _ := json.Marshal(c) // texts always encode
	return nats.Header{control.HeaderCaller: {string(text)}}
}
