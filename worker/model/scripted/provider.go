package scripted

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/strict"
	"github.com/longshore-run/longshore/worker/model"
)

const family = "scripted"

// maxFilled is how much of a task or tool result a placeholder stands for, in bytes.
const maxFilled = 16 << 10

// Provider plays a script. It holds no state and starts no goroutine.
type Provider struct{ script *Script }

var _ model.Provider = (*Provider)(nil)

// New returns a provider that plays s.
func New(s *Script) *Provider { return &Provider{s} }

// Stream implements model.Provider. A request that the script has no turn for is an *model.Error of class
// InvalidRequest that says which one is missing.
func (p *Provider) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if ctx.Err() != nil {
			yield(model.Delta{}, context.Cause(ctx))
			return
		}
		if err := r.Begins(); err != nil {
			yield(model.Delta{}, err)
			return
		}
		own := ofRun(r)
		n := turnsPlayed(own.Messages)
		t, err := p.script.turn(own, n)
		if err != nil {
			yield(model.Delta{}, err)
			return
		}
		placeholders := placeholdersOf(own, t)
		text := placeholders.Replace(t.text)
		wait := t.delay
		for rest := text; ; wait = t.pause {
			if err := pause(ctx, wait); err != nil {
				yield(model.Delta{}, err)
				return
			}
			if rest == "" {
				break
			}
			piece := rest[:pieceLen(rest, t.chunk)]
			if rest = rest[len(piece):]; !yield(model.Delta{Text: piece}, nil) {
				return
			}
			if rest == "" {
				break
			}
		}
		if t.failure != nil {
			failure := *t.failure
			yield(model.Delta{}, &failure)
			return
		}
		reply := p.reply(r, t, n, text, placeholders)
		for _, c := range reply.Message.Calls() {
			if !writeCall(ctx, &c, t, yield) {
				return
			}
		}
		yield(model.Delta{Reply: reply}, nil)
	}
}

// writeCall writes a call in pieces, as the text of its turn is written. It reports whether to continue.
func writeCall(ctx context.Context, c *messages.ToolCall, t *turn, yield func(model.Delta, error) bool) bool {
	if c.ID == "" || c.Name == "" {
		return true
	}
	for rest := c.Arguments; ; {
		n := pieceLen(rest, t.chunk)
		if !yield(model.Delta{Call: &model.CallPiece{ID: c.ID, Name: c.Name, Arguments: rest[:n]}}, nil) {
			return false
		}
		if rest = rest[n:]; rest == "" {
			return true
		}
		if err := pause(ctx, t.pause); err != nil {
			yield(model.Delta{}, err)
			return false
		}
	}
}

// placeholdersOf is what a turn's placeholders stand for; making it costs more than most turns.
func placeholdersOf(r model.Request, t *turn) *strings.Replacer {
	if !t.hasPlaceholders {
		return strings.NewReplacer()
	}
	return strings.NewReplacer(
		"${lastToolResult}", strict.Clip(lastToolResult(r.Messages), maxFilled),
		"${task}", strict.Clip(firstUserText(r.Messages), maxFilled),
	)
}

// turn finds turn number n, counted from 0, of the first scene that fits.
func (s *Script) turn(r model.Request, n int) (*turn, error) {
	task := firstUserText(r.Messages)
	for i := range s.scenes {
		sc := &s.scenes[i]
		if !strings.Contains(task, sc.match) || !offers(r.Tools, sc.tools) || !asksFor(r.Format, sc.format) {
			continue
		}
		if sc.repeat {
			return &sc.turns[n%len(sc.turns)], nil
		}
		if n < len(sc.turns) {
			return &sc.turns[n], nil
		}
		return nil, &model.Error{
			Class: model.InvalidRequest, Detail: fmt.Sprintf("scenes[%d] of the script has no turn %d", i, n+1),
			Hint: "add the turn, or repeat: true, to the scene",
		}
	}
	return nil, &model.Error{
		Class: model.InvalidRequest, Detail: "no scene of the script matches the first user message",
		Hint: "add a scene without match as the last one",
	}
}

func offers(tools []messages.ToolSpec, names []string) bool {
	for _, name := range names {
		if !slices.ContainsFunc(tools, func(t messages.ToolSpec) bool { return t.Name == name }) {
			return false
		}
	}
	return true
}

// asksFor reports whether a request asks for the format of a name.
func asksFor(f *model.Format, name string) bool {
	return name == "" || f != nil && f.Name == name
}

func (p *Provider) reply(r model.Request, t *turn, n int, text string, placeholders *strings.Replacer) *model.Reply {
	msg := messages.Message{Role: messages.RoleAssistant}
	if text != "" {
		msg.Content = messages.TextContent(text)
	}
	written := len(text)
	for i, c := range t.calls {
		args := c.raw
		if c.arguments != nil {
			args, _ = encode(fill(c.arguments, placeholders)) // Parse has encoded the same shape
		}
		msg.Content = append(msg.Content, messages.Block{ToolCall: &messages.ToolCall{
			ID: fmt.Sprintf("call_%d_%d", n+1, i+1), Name: c.name, Arguments: args,
		}})
		written += len(c.name) + len(args)
	}
	out := &model.Reply{Message: msg, Stop: t.stop, Provider: family, Model: r.Model}
	if out.Stop == "" {
		out.Stop = messages.StopEnd
		if len(t.calls) > 0 {
			out.Stop = messages.StopToolCalls
		}
	}
	if out.Model == "" {
		out.Model = p.script.model
	}
	if t.usage != nil {
		out.Usage = *t.usage
	} else {
		out.Usage = estimate(r, written)
	}
	return out
}

// estimate counts one token for four bytes, rounded up.
func estimate(r model.Request, written int) messages.Usage {
	read := 0
	for i := range r.Messages {
		read += size(r.Messages[i].Content)
	}
	for i := range r.Tools {
		read += len(r.Tools[i].Name) + len(r.Tools[i].Description) + len(r.Tools[i].InputSchema)
	}
	in, out := int64(read+3)/4, int64(written+3)/4
	return messages.Usage{Input: in, Output: out, Total: in + out}
}

func size(blocks []messages.Block) int {
	n := 0
	for _, b := range blocks {
		n += len(b.Text)
		if b.ToolCall != nil {
			n += len(b.ToolCall.Name) + len(b.ToolCall.Arguments)
		}
		if b.ToolResult != nil {
			n += size(b.ToolResult.Content)
		}
	}
	return n
}

// ofRun is a request without what earlier runs of the session said: a script is about one run.
func ofRun(r model.Request) model.Request {
	if r.Recalled <= 0 {
		return r
	}
	at := 0
	for at < len(r.Messages) && r.Messages[at].Role == messages.RoleSystem {
		at++
	}
	r.Messages = slices.Concat(r.Messages[:at], r.Messages[min(at+r.Recalled, len(r.Messages)):])
	return r
}

func turnsPlayed(ms []messages.Message) int {
	n := 0
	for i := range ms {
		if ms[i].Role == messages.RoleAssistant {
			n++
		}
	}
	return n
}

func firstUserText(ms []messages.Message) string {
	for i := range ms {
		if ms[i].Role == messages.RoleUser {
			return ms[i].Text()
		}
	}
	return ""
}

func lastToolResult(ms []messages.Message) string {
	for i := range slices.Backward(ms) {
		for _, b := range slices.Backward(ms[i].Content) {
			if b.ToolResult != nil {
				m := messages.Message{Content: b.ToolResult.Content}
				return m.Text()
			}
		}
	}
	return ""
}

// pieceLen is the length of the next piece: at most n bytes, but never less than a rune.
func pieceLen(s string, n int) int {
	if len(s) <= n {
		return len(s)
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	if n == 0 {
		_, n = utf8.DecodeRuneInString(s)
	}
	return n
}

// pause returns ctx's cause when ctx ends first or has ended.
func pause(ctx context.Context, d time.Duration) error {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return context.Cause(ctx)
}
