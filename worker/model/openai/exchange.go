package openai

import (
	"context"
	"time"

	"github.com/longshore-run/longshore/messages"
)

// exchange is what one call's two layers tell each other past the client between them. The client calls the HTTP
// layer from the goroutine of the call, so it needs no lock.
type exchange struct {
	edit  edit         // down: what the client cannot be told
	begin func() error // down: of the request; nil: nothing is asked

	sent time.Time // of the request

	status    int // up
	requestID string
	model     string
	usage     messages.Usage
	finish    string // the raw finish reason, the last that was not empty
	refused   bool   // part of the text is a refusal
	thoughts  thoughts
	done      bool // the provider said that the reply is complete
}

type exchangeKey struct{}

func withExchange(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

func exchangeOf(ctx context.Context) *exchange {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return x
	}
	return &exchange{}
}
