package model_test

import (
	"context"
	"iter"
	"testing"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
)

// chatter yields so many pieces of text and a reply.
type chatter int

func (c chatter) Stream(context.Context, model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for range int(c) {
			if !yield(model.Delta{Text: "x"}, nil) {
				return
			}
		}
		yield(model.Delta{Reply: &model.Reply{}}, nil)
	}
}

// What routing, retry and circuits cost for each call and for each piece of a streamed reply.
func BenchmarkRouter(b *testing.B) {
	request := model.Request{Models: []string{"a", "b"}, MaxTokens: 100}
	for range 40 {
		request.Messages = append(request.Messages, messages.Message{Role: messages.RoleUser, Content: messages.TextContent("some text")})
	}
	for name, pieces := range map[string]int{"call": 0, "1000 pieces": 1000} {
		b.Run(name, func(b *testing.B) {
			r, err := model.NewRouter(model.RouterConfig{Endpoints: []model.Endpoint{
				{Name: "a", Provider: chatter(pieces), Capabilities: &model.Capabilities{ContextWindow: 100_000}}, {Name: "b", Provider: chatter(0)},
			}})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, err := range r.Stream(b.Context(), request) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
