package runner

import (
	"context"
	"io"
	"strings"
	"sync"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/record"
	"github.com/longshore-run/longshore/worker/policy"
)

// maxTokensWaiting is how many bytes of replies wait for one slow hook. What comes beyond is dropped and counted.
const maxTokensWaiting = 64 << 10

// tokens tells hooks of a reply while it is written. It never waits for them. One goroutine uses it, like any
// LiveReply; what it forwards to sees everything first.
type tokens struct {
	LiveReply // continues as before

	pumps   []*pump
	secrets *policy.Redactor
	whole   func(string) string // redacts what is whole; set when text in pieces cannot be redacted
	streams map[messages.LiveKind]*stream
}

// stream is the redacted text of one kind.
type stream struct {
	out strings.Builder
	w   interface {
		io.Writer
		Flush() error
	}
}

// tell adds the on_tokens hooks to where a reply is shown. The failures of hooks are known when it ends.
func (x *hookWork) tell(ctx context.Context, shown LiveReply) (_ LiveReply, failures func() []record.Record) {
	hooks := x.at(x.journal.state, messages.HookOnTokens)
	if len(hooks) == 0 {
		return shown, func() []record.Record { return nil }
	}
	t := &tokens{LiveReply: shown, secrets: x.cfg.Secrets, streams: map[messages.LiveKind]*stream{}}
	if x.cfg.Secrets == nil {
		t.whole = x.cfg.Redact
	}
	call := x.hookCall(x.journal.state, messages.HookOnTokens, "")
	for _, h := range hooks {
		t.pumps = append(t.pumps, &pump{x: x, ctx: ctx, hook: h, call: call})
	}
	return t, func() (out []record.Record) {
		for _, p := range t.pumps {
			if err := p.failure(); err != nil {
				out = append(out, x.hookFailed(call, p.hook, err))
			}
		}
		return out
	}
}

// Add implements LiveReply.
func (t *tokens) Add(kind messages.LiveKind, text string) {
	t.LiveReply.Add(kind, text)
	s := t.stream(kind)
	_, _ = io.WriteString(s.w, text) // a Builder takes everything
	t.pass(kind, s)
}

// Reset implements LiveReply.
func (t *tokens) Reset() {
	t.LiveReply.Reset()
	clear(t.streams)
	for _, p := range t.pumps {
		p.push(messages.LiveReset, "")
	}
}

// Close implements LiveReply.
func (t *tokens) Close(whole bool) {
	t.LiveReply.Close(whole)
	for _, kind := range []messages.LiveKind{messages.LiveReasoning, messages.LiveText} {
		if s := t.streams[kind]; s != nil && whole {
			_ = s.w.Flush()
			t.pass(kind, s)
		}
	}
}

func (t *tokens) stream(kind messages.LiveKind) *stream {
	if t.streams[kind] == nil {
		s := &stream{}
		s.w = t.secrets.Writer(&s.out)
		if t.whole != nil {
			s.w = &held{to: &s.out, redact: t.whole}
		}
		t.streams[kind] = s
	}
	return t.streams[kind]
}

func (t *tokens) pass(kind messages.LiveKind, s *stream) {
	if s.out.Len() == 0 {
		return
	}
	for _, p := range t.pumps {
		p.push(kind, s.out.String())
	}
	s.out.Reset()
}

// held passes nothing on before Flush: the function that it redacts with must see the whole.
type held struct {
	text   strings.Builder
	to     io.Writer
	redact func(string) string
}

func (h *held) Write(b []byte) (int, error) { return h.text.Write(b) }

func (h *held) Flush() error {
	_, err := io.WriteString(h.to, h.redact(h.text.String()))
	return err
}

// pump calls one hook with the text of one reply, one call at a time.
type pump struct {
	x    *hookWork
	ctx  context.Context //nolint:containedctx // of Run, which waits for the calls; each has a timeout
	hook Hook
	call messages.HookCall

	mu      sync.Mutex
	waiting []messages.HookCall
	size    int // of waiting, in bytes
	dropped int // bytes since the last one that waits
	running bool
	err     error // the first
}

func (p *pump) push(kind messages.LiveKind, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil || p.size+len(text) > maxTokensWaiting {
		p.dropped += len(text)
		return
	}
	n := len(p.waiting)
	if n == 0 || p.waiting[n-1].Kind != kind || p.dropped > 0 {
		c := p.call
		c.Kind, c.Dropped = kind, p.dropped
		p.waiting, p.dropped = append(p.waiting, c), 0
		n++
	}
	p.waiting[n-1].Text += text
	p.size += len(text)
	if !p.running {
		p.running = true
		p.x.pumps.Go(p.run)
	}
}

// run calls the hook until nothing waits or it fails: a hook that fails once is not called again for this reply.
func (p *pump) run() {
	for {
		p.mu.Lock()
		if len(p.waiting) == 0 || p.err != nil {
			p.waiting, p.size, p.running = nil, 0, false
			p.mu.Unlock()
			return
		}
		c := p.waiting[0]
		p.waiting = p.waiting[1:]
		p.size -= len(c.Text)
		p.mu.Unlock()
		if _, err := p.hook.call(p.ctx, c, p.x.cfg.Log); err != nil {
			p.mu.Lock()
			p.err = err
			p.mu.Unlock()
		}
	}
}

func (p *pump) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}
