package openai

import (
	"context"
	"errors"
	"io"
	"iter"

	api "github.com/sashabaranov/go-openai"

	"github.com/longshore-run/longshore/worker/model"
)

const family = "openai"

// Stream implements model.Provider. It starts no goroutine; a caller that leaves the loop aborts the request.
func (p *Provider) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if r.Model == "" {
			r.Model = p.model
		}
		x := &exchange{begin: r.Begin}
		call, cancel := context.WithCancel(withExchange(ctx, x))
		defer cancel()
		stream, err := p.open(call, r, x)
		if err != nil {
			yield(model.Delta{}, p.fault(ctx, err, model.InvalidRequest))
			return
		}
		defer func() { _ = stream.Close() }() // nothing to lose: the reply has been read or is not wanted
		reply, err := p.read(stream, r, x, yield)
		switch {
		case errors.Is(err, errAbandoned):
		case err != nil:
			yield(model.Delta{}, p.fault(ctx, err, model.ModelOutput))
		default:
			yield(model.Delta{Reply: reply}, nil)
		}
	}
}

func (p *Provider) open(ctx context.Context, r model.Request, x *exchange) (*api.ChatCompletionStream, error) {
	if r.Model == "" {
		return nil, &model.Error{
			Class: model.InvalidRequest, Detail: "no model is named",
			Hint: "set OPENAI_MODEL, or the model of the provider or agent",
		}
	}
	req, e, err := p.request(r)
	if err != nil {
		return nil, err
	}
	x.edit = e
	return p.client.CreateChatCompletionStream(ctx, req)
}

// errAbandoned means that the consumer left the loop.
var errAbandoned = errors.New("the consumer left")

func (p *Provider) read(
	stream *api.ChatCompletionStream, r model.Request, x *exchange, yield func(model.Delta, error) bool,
) (*model.Reply, error) {
	var a assembly
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) && x.done {
			return a.reply(r, x, p.flavour)
		}
		if err != nil {
			return nil, err
		}
		text, reasoning, calls := a.add(chunk)
		if reasoning != "" && !yield(model.Delta{Reasoning: reasoning}, nil) {
			return nil, errAbandoned
		}
		if text != "" && !yield(model.Delta{Text: text}, nil) {
			return nil, errAbandoned
		}
		for _, c := range calls {
			if !yield(model.Delta{Call: c}, nil) {
				return nil, errAbandoned
			}
		}
	}
}

// fault is the error of a call: ctx's cause when it ended, the HTTP layer's error as it is, and anything else, which
// comes from the client, as one of the given class.
func (p *Provider) fault(ctx context.Context, err error, class model.Class) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if known, ok := errors.AsType[*model.Error](err); ok {
		return known
	}
	e := &model.Error{Class: class, Detail: p.secrets.Clean(err.Error())}
	if errors.Is(err, api.ErrReasoningToolsRequireResponses) {
		e.Hint = "choose a model that takes tools over chat completions"
	}
	return e
}
