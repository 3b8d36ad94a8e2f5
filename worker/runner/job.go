package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/messages/runlog"
	"github.com/longshore-run/longshore/messages/sensitive"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/worker/memory/longterm"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/policy"
)

// Prices knows what model calls cost. Safe for concurrent use.
type Prices interface {
	// Cost is in US dollars; false: it is unknown, which is not 0. With an empty provider the model is the name that an
	// agent gives, which may be empty too.
	Cost(provider, model string, u messages.Usage) (usd float64, ok bool)
}

// job is one ticket, as all owners of its execution know it. Nothing of it changes but the ticket's Body, which the claimer
// lets go when the log has it.
type job struct {
	r       *Runner
	cfg     *Config
	log     runlog.Log
	run     messages.Ref
	ticket  Ticket
	claimID string
}

// price is an agent.Price.
func (x *job) price(provider, name string, u messages.Usage) (float64, bool) {
	if x.cfg.Prices == nil {
		return 0, false
	}
	usd, ok := x.cfg.Prices.Cost(provider, name, u)
	if !ok || !(usd >= 0) || math.IsInf(usd, 0) {
		return 0, false
	}
	return messages.RoundCost(usd), true
}

// cost is what a reply cost; nil: unknown.
func (x *job) cost(r *model.Reply) *float64 {
	if r.Cached {
		return new(0.0)
	}
	for _, name := range r.PricedAs() {
		if usd, ok := x.price(r.Provider, name, r.Usage); ok {
			return &usd
		}
	}
	return nil
}

// Providers by which prices of models for vectors are found: the endpoint speaks the protocol of the second.
const (
	providerEmbeddings = "embeddings"
	providerOpenAI     = "openai"
)

// embedded is what a meter has counted, as a record; nil: nothing.
func (x *job) embedded(m *longterm.Meter) *record.Embedded {
	t := m.Total()
	if t.Calls == 0 {
		return nil
	}
	e := &record.Embedded{Model: t.Model, Calls: t.Calls, Tokens: t.Tokens}
	for _, provider := range []string{providerEmbeddings, providerOpenAI} {
		if usd, ok := x.price(provider, t.Model, messages.Usage{Input: t.Tokens, Total: t.Tokens}); ok {
			e.Cost = &usd
			break
		}
	}
	return e
}

func (x *job) now() time.Time { return x.cfg.Controller.Now() }

func (x *job) draining() bool {
	select {
	case <-x.r.drain:
		return true
	default:
		return false
	}
}

// key is stable for the same thing in the same step of the same run, over attempts.
func (x *job) key(step int, what string) string {
	return x.run.Tenant + "." + x.run.Run + "." + strconv.Itoa(step) + "." + what
}

// redact takes secrets out of what a model or a tool said, before it becomes a record, an event or a file.
func (x *job) redact(in []messages.Block) []messages.Block {
	out := policy.Joined(in, x.cfg.Redact)
	for i, b := range out {
		if b.Reasoning != nil {
			r := *b.Reasoning
			if r.Text = x.cfg.Redact(r.Text); r.Text != b.Reasoning.Text {
				r.Signature = "" // of another text
			}
			b.Reasoning = &r
		}
		if b.ToolCall != nil {
			c := *b.ToolCall
			c.ID, c.Name, c.Arguments = x.cfg.Redact(c.ID), x.cfg.Redact(c.Name), x.cfg.Redact(c.Arguments)
			b.ToolCall = &c
		}
		out[i] = b
	}
	return out
}

func (x *job) redactArgs(args json.RawMessage) json.RawMessage {
	if len(args) == 0 {
		return args
	}
	text := x.cfg.Redact(string(args))
	switch {
	case text == string(args):
		return args
	case !json.Valid([]byte(text)): // a secret that is part of a number leaves no JSON
		return json.RawMessage(`{}`)
	default:
		return json.RawMessage(text)
	}
}

func (x *job) says(ctx context.Context, level slog.Level) bool {
	return x.cfg.Log.Enabled(ctx, level)
}

// said is a text as the log may show it. It is redacted before it is shortened, for half a number would not be found.
func (x *job) said(key, text string) slog.Attr {
	return slog.String(key, strict.Clip(sensitive.Redact(x.cfg.Redact(strings.ToValidUTF8(text, "\uFFFD"))), maxSaid))
}

// retryText is a setback in a sentence for those who watch.
func (x *job) retryText(r model.Retried) string {
	text := strict.Clip(x.cfg.Redact(strings.ToValidUTF8(r.Err.Error(), "\uFFFD")), maxSaid) + " (" + string(r.Err.Code()) + ")"
	if r.Wait == 0 {
		return text + "; another model is asked"
	}
	return fmt.Sprintf("%s; attempt %d follows in %s", text, r.Attempt+1, r.Wait.Round(100*time.Millisecond))
}

func (x *job) newClaim() *record.Claimed {
	return &record.Claimed{Claim: x.claimID, Worker: x.cfg.Worker, Ticket: x.ticket.Seq, Delivery: x.ticket.Delivered}
}

// unread is the first record of a task that must not be opened.
func (x *job) unread() *record.Started {
	return record.Unread(x.run, x.ticket.Priority, x.ticket.Queued)
}

// meta is what a tool said about its result, without secrets; nil when it cannot be told without them.
func (x *job) meta(in map[string]any) json.RawMessage {
	if len(in) == 0 {
		return nil
	}
	raw, err := json.Marshal(in)
	if err != nil {
		return nil
	}
	// A secret that is part of a number leaves no JSON.
	text := x.cfg.Redact(string(raw))
	if !json.Valid([]byte(text)) || len(text) > record.MaxMeta {
		return json.RawMessage(`{"_leftOut":` + strconv.Itoa(len(in)) + `}`)
	}
	return json.RawMessage(text)
}
