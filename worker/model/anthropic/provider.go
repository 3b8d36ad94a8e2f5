package anthropic

import (
	"context"
	"errors"
	"iter"

	"github.com/longshore-run/longshore/worker/model"
)

const family = "anthropic"

// Stream implements model.Provider. It starts no goroutine; a caller that leaves the loop aborts the request.
func (p *Provider) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		x := &exchange{Call: p.http.Call(ctx, r.Begin), provider: p, names: namesOf(r.Tools)}
		defer func() { _ = x.Close() }() // nothing to lose: the reply has been read or is not wanted
		if r.Model == "" {
			r.Model = p.config.Model
		}
		reply, err := x.call(ctx, r, yield)
		switch {
		case errors.Is(err, errAbandoned):
		case err != nil:
			yield(model.Delta{}, x.fault(err))
		default:
			yield(model.Delta{Reply: reply}, nil)
		}
	}
}

// errAbandoned means that the consumer left the loop.
var errAbandoned = errors.New("the consumer left")

// call makes the request and reads the answer.
func (x *exchange) call(ctx context.Context, r model.Request, yield func(model.Delta, error) bool) (*model.Reply, error) {
	if r.Model == "" {
		return nil, &model.Error{
			Class: model.InvalidRequest, Detail: "no model is named",
			Hint: "set ANTHROPIC_MODEL, or the model of the provider or agent",
		}
	}
	asked, err := x.request(r)
	if err != nil {
		return nil, err
	}
	if err := x.send(ctx, asked); err != nil {
		return nil, err
	}
	a := assembly{names: x.names}
	if err := x.read(&a, yield); err != nil {
		return nil, err
	}
	x.Complete()
	return a.reply(r, asked.MaxTokens)
}

// fault is the error of a call: the cause of its context when that ended, and an *model.Error otherwise.
func (x *exchange) fault(err error) error {
	err = x.Failure(err)
	if e, ok := errors.AsType[*model.Error](err); ok {
		if e.Detail == "" { // nothing but control characters was said
			e.Detail = "the endpoint says nothing about it"
		}
		if e.Hint == "" {
			e.Hint = ownHint(e.Class)
		}
	}
	return err
}
