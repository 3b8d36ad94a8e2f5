// Package live shows replies while they are written, and what programs of tools write while they run. Make a [Publisher] with [New] and open a [Call] for each model
// call: it gathers the pieces of the reply, takes secrets out of them, also of those that come in pieces, and
// publishes them a few times a second.
//
// It may drop and counts what it drops. It never waits for the network on behalf of the model's stream, and a reply
// that is complete before the first piece would have been published costs one timer and no message at all.
package live

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/policy"
)

// Config of a Publisher.
type Config struct {
	Publish func(messages.Ref, *messages.Live) error // an error means that the message is lost; needed
	Redact  *policy.Redactor                         // default: nothing
	Every   time.Duration                            // how long text is gathered. Default 50 ms: it reads as a flow
}

// Defaults and bounds.
const (
	defaultEvery = 50 * time.Millisecond
	maxOutput    = 1 << 20  // bytes of what a program of one call writes; the rest is dropped
	enough       = 1 << 10  // bytes of a reply that are published without waiting, but for the first ones
	maxName      = 256      // bytes of the id or the name of a tool call
	maxWaiting   = 64 << 10 // bytes of a reply that wait to be published; then the oldest are dropped
)

// Publisher publishes the replies of a worker. Safe for concurrent use.
type Publisher struct {
	cfg       Config
	published atomic.Uint64
	dropped   atomic.Uint64
}

// New returns a Publisher.
func New(cfg Config) *Publisher {
	cfg.Every = cmp.Or(cfg.Every, defaultEvery)
	return &Publisher{cfg: cfg}
}

// Stats count what was published.
type Stats struct {
	Published uint64 // messages
	Dropped   uint64 // bytes of text that were not published, because publishing failed or was too slow
}

// Stats returns the counts so far.
func (p *Publisher) Stats() Stats { return Stats{p.published.Load(), p.dropped.Load()} }

// Open begins a call, of which no more is published than events may show. The attempt must grow whenever the step's call is made
// anew. Close the Call.
func (p *Publisher) Open(run messages.Ref, step, attempt int, shown *record.Shown) *Call {
	c := &Call{p: p, run: run, step: step, attempt: attempt, try: 1}
	if shown != nil {
		c.shows = *shown
	}
	return c
}
