// Package request is what the handlers of a dispatcher's requests share: what a handler is, on whose behalf a request is made,
// how much an answer may hold, and what an error means to the caller.
package request

import (
	"context"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
)

// Timeout is how long one request may take.
const Timeout = 10 * time.Second

// Handler answers a request's body. The reply is sent as JSON; an error is sent as its Problem.
type Handler func(ctx context.Context, body []byte) (any, error)

// Handlers are handlers by the subjects that they answer.
type Handlers map[string]Handler

// Read makes a Handler of a function: the body is read strictly before it is called.
func Read[Request any](do func(context.Context, Request) (any, error)) Handler {
	return func(ctx context.Context, body []byte) (any, error) {
		var req Request
		if err := strict.Decode(body, &req); err != nil {
			return nil, err
		}
		return do(ctx, req)
	}
}

// RunOf is the run that a request names, when it names nothing else.
func RunOf(body []byte) (messages.Ref, error) {
	var req control.RunRequest
	if err := strict.Decode(body, &req); err != nil {
		return messages.Ref{}, err
	}
	return req.Ref()
}
