package model

import (
	"context"
	"iter"
	"time"
)

// ReplyTime bounds the whole time of each call of a provider, from the request to the end of the reply: a server that
// sends a byte now and then is never silent, and would hold its run forever. A call that takes longer ends with an
// *Error of class Timeout. Most must be above 0.
func ReplyTime(p Provider, most time.Duration) Provider { return bounded{p, most} }

type bounded struct {
	Provider

	most time.Duration
}

// Stream implements Provider.
func (b bounded) Stream(ctx context.Context, r Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		late := &Error{
			Class: Timeout, Detail: "the reply was not complete within " + b.most.String(),
			Hint: "ask for shorter replies, or raise LONGSHORE_MODEL_REPLY_TIMEOUT",
		}
		within, cancel := context.WithTimeoutCause(ctx, b.most, late)
		defer cancel()
		for d, err := range b.Provider.Stream(within, r) {
			if err != nil && ctx.Err() == nil && within.Err() != nil {
				err = late // whatever the provider makes of the end of its context
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// Close is the provider's.
func (b bounded) Close() {
	if p, ok := b.Provider.(interface{ Close() }); ok {
		p.Close()
	}
}
