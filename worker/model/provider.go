// Package model reaches language models. Each kind of provider is a leaf folder; [Router] chooses among them and
// [Retry] repeats what may be repeated.
package model

import (
	"context"
	"encoding/json"
	"iter"
	"strings"

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
	Key         string   // stable for the same step of the same run, over attempts
	Tenant      string   // who the call is made for
	Model       string   // the provider's name of the model; empty: the provider's default
	Models      []string // instead of Model, for a Router: in order of priority
	MaxPrice    *float64 // for a Router: USD per million tokens, of input and of output each; nil: no ceiling
	Messages    []messages.Message
	Recalled    int // of the Messages after the system's: those of earlier runs of the session, and of memory. Not for the model
	Tools       []messages.ToolSpec
	MaxTokens   int                    // of the reply; 0: the provider's default
	Temperature *float64               // nil: the provider's default
	Format      *Format                // of the reply's text; nil: free
	Purpose     messages.Purpose       // of the planner "plan": what the reply is for; empty: a turn of the conversation. Not for the model
	Echo        bool                   // send reasoning of the provider's own family back to it
	Cache       bool                   // a reply to the same request may be used again, if Temperature is 0
	Keep        func(text string) bool // reports whether a cache may hold a text of the reply; nil: any. Not for the model

	Retries *int // after the first attempt at a model; nil: as it is configured; negative counts as 0
	Patient bool // for a Router: a circuit that is open for long is waited for a while before the call is given up

	// Begin, if set, is called right before each request leaves, attempts of a Retry included: as late as the provider can. Its
	// error ends the call and nothing leaves; ctx has then ended with that error as its cause.
	Begin func() error

	Setback func(Retried) // called for each failed call that is retried; must not block; may be nil
}

// Begins asks Begin. A provider calls it right before its request leaves.
func (r *Request) Begins() error {
	if r.Begin == nil {
		return nil
	}
	return r.Begin()
}

// Format asks for JSON. A provider that has neither schema nor JSON mode is asked by the prompt alone.
type Format struct {
	Name   string          // of the schema, for providers that want one
	Schema json.RawMessage // JSON Schema of an object; nil: any JSON object
}

// Delta is one piece of a reply; exactly one field is set.
type Delta struct {
	Text      string
	Reasoning string
	Call      *CallPiece
	Reset     bool // a retry begins: forget text, reasoning and calls so far
	Reply     *Reply
}

// CallPiece continues with a tool call while the model writes it. A provider need not give any: the Reply has the calls
// whole, and their ids there may be others.
type CallPiece struct {
	ID, Name  string // of the call, in each of its pieces
	Arguments string // what follows; empty: the call begins
}

// Shown reports whether the delta is a piece that a reset takes back.
func (d *Delta) Shown() bool { return d.Text != "" || d.Reasoning != "" || d.Call != nil }

// Reply is the whole answer.
type Reply struct {
	Message  messages.Message // role assistant
	Stop     messages.StopReason
	Usage    messages.Usage
	Provider string // family: "openai", "anthropic", "scripted"
	Model    string // as the provider names it
	Asked    string // from a Router: the name by which the model was asked for; a provider may answer with another one
	Cached   bool   // from the reply cache: nothing was paid for it
}

// PricedAs are the names by which the price of the reply's model may be known, the first that is known counts: gpt-4o may
// answer as gpt-4o-2024-08-06.
func (r *Reply) PricedAs() []string {
	if r.Asked != "" && strings.HasPrefix(r.Model, r.Asked+"-") {
		return []string{r.Model, r.Asked}
	}
	return []string{r.Model}
}
