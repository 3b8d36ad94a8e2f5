package live

import (
	"slices"
	"sync"
	"time"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
)

// Call is the reply of one model call. Add, Reset and Close are for one goroutine and do not wait for the network,
// but for Close, when a message is just being published.
type Call struct {
	p             *Publisher
	run           messages.Ref
	step, attempt int
	shows         record.Shown // of the run
	of            called       // the tool call whose output this is; zero: of none

	flushing sync.WaitGroup // the timer that runs, or what it does

	mu        sync.Mutex // guards what follows
	timer     *time.Timer
	armed     bool     // the timer runs, or what it does is in progress
	try       int      // from 1
	begun     bool     // something was published
	shown     bool     // of this try
	raw       []raw    // as it came
	waiting   []piece  // redacted
	size      int      // of raw and waiting, in bytes
	dropped   int      // bytes since the last message
	text      *trickle // of the try; nil: none yet
	reasoning *trickle // of the try; nil: none yet
	call      *trickle // of the arguments of the call that is being written; nil: none
	calling   called   // that call
	output    *trickle // of what a program writes; nil: none yet
	closed    bool
	given     int // bytes of what a program writes that were taken

	n int // of the last message; used by flush
}

// raw is text of one kind that is not redacted yet.
type raw struct {
	kind messages.LiveKind
	of   called // when it is of a tool call
	text []byte
}

// piece is a message to be.
type piece struct {
	kind messages.LiveKind
	of   called // when it is of a tool call
	text string
}

// called is a tool call.
type called struct{ id, name string }

func (of called) size() int { return len(of.id) + len(of.name) }

// Add takes a piece of text or reasoning.
func (c *Call) Add(kind messages.LiveKind, text string) {
	if !c.shows.NoReplies {
		c.add(kind, called{}, text)
	}
}

// AddCall takes a piece of the arguments of a tool call. One with an id or name of unusual length is not shown.
func (c *Call) AddCall(id, name, args string) {
	if c.shows.NoInputs {
		args = ""
	}
	if max(len(id), len(name)) <= maxName {
		c.add(messages.LiveCall, called{id, name}, args)
	}
}

func (c *Call) add(kind messages.LiveKind, of called, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.raw); n == 0 || c.raw[n-1].kind != kind || c.raw[n-1].of != of {
		c.raw = append(c.raw, raw{kind: kind, of: of})
		c.size += of.size()
	}
	last := &c.raw[len(c.raw)-1]
	last.text = append(last.text, text...)
	if c.size += len(text); c.size > maxWaiting {
		c.overflow()
	}
	c.arm()
}

// Retry says that a try has failed and what follows. The text is published as it is.
func (c *Call) Retry(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.redact()
	c.waiting = append(c.waiting, piece{kind: messages.LiveRetry, text: text})
	if c.size += len(text); c.size > maxWaiting {
		c.overflow()
	}
	c.arm()
}

// Reset forgets the reply so far: it begins anew.
func (c *Call) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.try++
	c.waiting = slices.DeleteFunc(c.waiting, func(p piece) bool { return p.kind != messages.LiveRetry })
	c.raw, c.size, c.dropped = nil, 0, 0
	for _, p := range c.waiting {
		c.size += len(p.text)
	}
	c.text, c.reasoning, c.call, c.calling = nil, nil, nil, called{}
	if c.shown {
		c.shown = false
		c.waiting = append(c.waiting, piece{kind: messages.LiveReset})
		c.arm()
	}
}

// Close ends the call. What is left of a whole reply is published if some of it was; of any other it is forgotten, and
// with it what may be the beginning of a secret. When Close returns the call has no goroutine left.
func (c *Call) Close(whole bool) {
	c.mu.Lock()
	c.closed = true
	if c.armed && c.timer.Stop() {
		c.armed = false
		c.flushing.Done()
	}
	c.mu.Unlock()
	c.flushing.Wait()
	if whole && c.begun {
		c.publish(c.take(true))
	}
}

// arm makes sure that what waits is published in time. The first time that is never at once: most short replies are
// complete before.
func (c *Call) arm() {
	urgent := c.begun && c.size >= enough
	switch {
	case c.closed:
	case !c.armed:
		c.armed = true
		c.flushing.Add(1)
		wait := c.p.cfg.Every
		if urgent {
			wait = 0
		}
		if c.timer == nil {
			c.timer = time.AfterFunc(wait, c.flush)
		} else {
			c.timer.Reset(wait)
		}
	case urgent && c.timer.Stop():
		c.timer.Reset(0)
	}
}

// flush publishes what waits. The timer calls it, never twice at a time.
func (c *Call) flush() {
	defer c.flushing.Done()
	c.publish(c.take(false))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed = false
	if c.size > 0 || len(c.waiting) > 0 {
		c.arm()
	}
}

// take is what is to be published now. At the end that is all there is.
func (c *Call) take(end bool) []messages.Live {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.redact()
	if end {
		for _, kind := range []messages.LiveKind{messages.LiveReasoning, messages.LiveText} {
			c.wait(kind, called{}, c.trickle(kind).rest())
		}
		c.callEnded()
		c.wait(messages.LiveToolOutput, c.of, c.trickle(messages.LiveToolOutput).rest())
	}
	var out []messages.Live
	for _, w := range c.waiting {
		out = append(out, messages.Live{
			Type: messages.TypeLive, Run: c.run.Run, Step: c.step, Attempt: c.attempt, Try: c.try, Kind: w.kind, Text: w.text,
			CallID: w.of.id, Tool: w.of.name,
		})
		switch w.kind {
		case messages.LiveText, messages.LiveReasoning, messages.LiveCall, messages.LiveToolOutput:
			out[len(out)-1].Dropped, c.dropped = c.dropped, 0
			c.shown = true
		case messages.LiveRetry, messages.LiveReset:
		}
	}
	c.begun = c.begun || len(out) > 0
	c.waiting, c.size = nil, 0
	return out
}

// publish publishes messages; one that cannot be published is dropped.
func (c *Call) publish(out []messages.Live) {
	lost := 0
	for i := range out {
		l := &out[i]
		l.N, l.Dropped = c.n+1, l.Dropped+lost
		if err := c.p.cfg.Publish(c.run, l); err != nil {
			lost = l.Dropped + len(l.Text)
			c.p.dropped.Add(uint64(len(l.Text)))
			continue
		}
		c.n, lost = l.N, 0
		c.p.published.Add(1)
	}
	if lost > 0 {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.dropped += lost
	}
}

// redact moves what came to what waits.
func (c *Call) redact() {
	for _, r := range c.raw {
		c.size -= len(r.text) + r.of.size()
		if r.kind == messages.LiveCall && r.of != c.calling {
			c.callEnded()
			c.calling, c.call = r.of, c.newTrickle()
			c.waiting = append(c.waiting, piece{kind: r.kind, of: c.clean(r.of)}) // shown although it has no arguments yet
			c.size += r.of.size()
		}
		c.wait(r.kind, r.of, c.trickle(r.kind).pass(r.text))
	}
	c.raw = nil
}

func (c *Call) trickle(kind messages.LiveKind) *trickle {
	t := &c.text
	switch kind {
	case messages.LiveReasoning:
		t = &c.reasoning
	case messages.LiveCall:
		t = &c.call
	case messages.LiveToolOutput:
		t = &c.output
	case messages.LiveText, messages.LiveRetry, messages.LiveReset:
	}
	if *t == nil {
		*t = c.newTrickle()
	}
	return *t
}

func (c *Call) newTrickle() *trickle { return newTrickle(c.p.cfg.Redact, c.shows.Redact > 0) }

// callEnded passes on what was held back of a call, which has ended.
func (c *Call) callEnded() {
	if c.call != nil {
		c.wait(messages.LiveCall, c.calling, c.call.rest())
	}
	c.call, c.calling = nil, called{}
}

func (c *Call) clean(of called) called {
	return called{c.p.cfg.Redact.String(of.id), c.p.cfg.Redact.String(of.name)}
}

// wait adds to what waits.
func (c *Call) wait(kind messages.LiveKind, of called, text string) {
	if text == "" {
		return
	}
	of = c.clean(of)
	c.size += len(text)
	if n := len(c.waiting); n > 0 && c.waiting[n-1].kind == kind && c.waiting[n-1].of == of {
		c.waiting[n-1].text += text
		return
	}
	c.size += of.size()
	c.waiting = append(c.waiting, piece{kind, of, text})
}

// overflow drops the older half of what waits. It is redacted first, or the rest of a secret could stay.
func (c *Call) overflow() {
	c.redact()
	for i := 0; c.size > maxWaiting/2 && i < len(c.waiting); i++ {
		w := &c.waiting[i]
		if w.kind == messages.LiveRetry { // a few, and short
			continue
		}
		cut := boundary(w.text, min(len(w.text), c.size-maxWaiting/2))
		w.text = w.text[cut:]
		c.size -= cut
		c.dropped += cut
		c.p.dropped.Add(uint64(cut))
	}
	kept := c.waiting[:0]
	for _, w := range c.waiting {
		if w.text != "" || w.kind == messages.LiveReset {
			kept = append(kept, w)
		} else {
			c.size -= w.of.size()
		}
	}
	c.waiting = kept
}
