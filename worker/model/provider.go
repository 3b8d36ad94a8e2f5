// Package model reaches language models. Each kind of provider is a leaf folder; [Router] chooses among them and
// [Retry] repeats what may be repeated.
package model

import (
	"context"
	"iter"

	"github.com/longshore-run/longshore/messages"
)

// Provider streams one reply. Safe for concurrent use.
type Provider interface {
	// Stream makes the call and yields text as it comes and, last, exactly one Delta with Reply set. It ends early
	// with an *Error; nothing follows an error. Cancelling ctx aborts the request at once and yields ctx's cause.
	Stream(ctx context.Context, r Request) iter.Seq2[Delta, error]
}

// Request is immutable: a provider must not change what it points to.
type Request struct {
	Key         string // stable for the same step of the same run, over attempts
	Model       string // the provider's name of the model; empty: the provider's default
	Messages    []messages.Message
	Tools       []messages.ToolSpec
	MaxTokens   int      // of the reply; 0: the provider's default
	Temperature *float64 // nil: the provider's default
}

// Delta is one piece of a reply; exactly one field is set.
type Delta struct {
	Text  string
	Reset bool // a retry begins: forget the text so far
	Reply *Reply
}

// Reply is the whole answer.
type Reply struct {
	Message  messages.Message // role assistant
	Stop     messages.StopReason
	Usage    messages.Usage
	Provider string // family: "openai", "anthropic", "scripted"
	Model    string // as the provider names it
}
