package anthropic

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"time"

	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/longshore-run/longshore/worker/model"
)

const family = "anthropic"

// Stream implements model.Provider. It starts no goroutine; a caller that leaves the loop aborts the request.
func (p *Provider) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		inner, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		x := &exchange{provider: p, ctx: inner, begin: r.Begin, dog: newWatchdog(cancel), names: namesOf(r.Tools)}
		defer x.close()
		if r.Model == "" {
			r.Model = p.config.Model
		}
		reply, err := x.call(r, yield)
		switch {
		case errors.Is(err, errAbandoned):
		case err != nil:
			yield(model.Delta{}, x.fault(ctx, context.Cause(inner), err))
		default:
			yield(model.Delta{Reply: reply}, nil)
		}
	}
}

// errAbandoned means that the consumer left the loop.
var errAbandoned = errors.New("the consumer left")

// call makes the request and reads the answer.
func (x *exchange) call(r model.Request, yield func(model.Delta, error) bool) (*model.Reply, error) {
	if r.Model == "" {
		return nil, &model.Error{
			Class: model.InvalidRequest, Detail: "no model is named",
			Hint: "set ANTHROPIC_MODEL, or the model of the provider or agent",
		}
	}
	params, err := x.request(r)
	if err != nil {
		return nil, err
	}
	var resp *http.Response
	if err := x.provider.client.Post(x.ctx, "v1/messages", params, &resp, option.WithHTTPClient(x)); err != nil {
		if x.err != nil {
			return nil, x.err
		}
		return nil, err
	}
	a := assembly{names: x.names}
	if err := x.read(&a, yield); err != nil {
		return nil, err
	}
	x.done = true
	return a.reply(r, int(params.MaxTokens))
}

// fault is the error of a call: ctx's cause when it ended, and an *model.Error otherwise. Ended is the cause of the
// request's own end.
func (x *exchange) fault(ctx context.Context, ended, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e, ok := errors.AsType[*model.Error](err)
	switch {
	case ok:
		e.Detail = x.provider.secrets.Clean(e.Detail)
	case errors.Is(ended, errIdle):
		e = &model.Error{
			Class: model.Timeout, Detail: "nothing came for " + x.wait.Round(time.Millisecond).String(),
			Hint: "try again; a slow endpoint needs a longer LONGSHORE_MODEL_TIMEOUT",
		}
	case x.body == nil: // the client refuses our own request
		e = &model.Error{Class: model.InvalidRequest, Detail: x.provider.secrets.Clean(err.Error())}
	default:
		e = truncated(x.provider.secrets.Clean("the stream was cut: " + err.Error()))
	}
	if e.Detail == "" { // nothing but control characters was said
		e.Detail = "the endpoint says nothing about it"
	}
	if e.Status == 0 {
		e.Status = x.status
	}
	if e.RequestID == "" {
		e.RequestID = x.requestID
	}
	return e
}
