package openai

import (
	"context"
	"errors"
	"iter"

	"github.com/longshore-run/longshore/worker/model"
)

const family = "openai"

// Stream implements model.Provider. It starts no goroutine; a caller that leaves the loop aborts the request.
func (p *Provider) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if r.Model == "" {
			r.Model = p.config.Model
		}
		x := &exchange{Call: p.http.Call(ctx, r.Begin)}
		defer func() { _ = x.Close() }() // nothing to lose: the reply has been read or is not wanted
		reply, err := p.call(ctx, x, r, yield)
		switch {
		case errors.Is(err, errAbandoned):
		case err != nil:
			yield(model.Delta{}, x.Failure(err))
		default:
			yield(model.Delta{Reply: reply}, nil)
		}
	}
}

// call makes the request and reads the answer.
func (p *Provider) call(
	ctx context.Context, x *exchange, r model.Request, yield func(model.Delta, error) bool,
) (*model.Reply, error) {
	if r.Model == "" {
		return nil, &model.Error{
			Class: model.InvalidRequest, Detail: "no model is named",
			Hint: "set OPENAI_MODEL, or the model of the provider or agent",
		}
	}
	body, e, err := p.request(r)
	if err != nil {
		return nil, err
	}
	req, err := p.post(ctx, &body, &e)
	if err != nil {
		return nil, err
	}
	if err := x.send(req); err != nil {
		return nil, err
	}
	s := stream{x: x, norm: normal{x: x, marks: marks{tools: e.tools}}, yield: yield}
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	x.Complete()
	return s.reply.reply(r, x, p.config.Flavour)
}
