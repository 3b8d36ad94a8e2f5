package anthropic

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
)

// maxBlocks bounds the blocks of a reply; models write a handful.
const maxBlocks = 2048

// assembly puts a reply together.
type assembly struct {
	names names

	model  string
	reason string // raw, the last that was not empty
	usage  wireUsage
	blocks []*piece
	open   map[wireIndex]*piece // by the index on the wire
}

// piece is one block.
type piece struct {
	wireBlock
	text strings.Builder // the text, thought or arguments
	sign strings.Builder // the signature of a thought
}

// add takes in an event, and reports whether it was the last.
func (a *assembly) add(e *event, yield func(model.Delta, error) bool) (done bool, err error) {
	switch e.Type {
	case messageStart:
		a.model = e.Message.Model
		a.count(&e.Message.Usage)
		for i, raw := range e.Message.Content { // there is none, unless a gateway is in a hurry
			if err := a.block(wireIndex(i), raw, yield); err != nil {
				return false, err
			}
		}
	case blockStart:
		return false, a.start(e.Index, &e.Block, yield)
	case blockDelta:
		return false, a.delta(e.Index, &e.Delta, yield)
	case messageDelta:
		if e.Delta.StopReason != "" {
			a.reason = e.Delta.StopReason
		}
		a.count(&e.Usage)
	case messageStop:
		return true, nil
	}
	return false, nil // ping, content_block_stop, and what is not known
}

// whole takes in a reply that is not streamed.
func (a *assembly) whole(m *message, yield func(model.Delta, error) bool) error {
	a.model, a.reason = m.Model, m.StopReason
	a.count(&m.Usage)
	for i, raw := range m.Content {
		if err := a.block(wireIndex(i), raw, yield); err != nil {
			return err
		}
	}
	return nil
}

func (a *assembly) block(i wireIndex, raw json.RawMessage, yield func(model.Delta, error) bool) error {
	b, err := parseBlock(raw)
	if err != nil {
		return garbled("the answer cannot be read: %v", err)
	}
	return a.start(i, b, yield)
}

func (a *assembly) start(index wireIndex, b *wireBlock, yield func(model.Delta, error) bool) error {
	if index < 0 {
		return garbled("a block has no index")
	}
	if len(a.blocks) >= maxBlocks {
		return garbled("the reply has more than %d blocks", maxBlocks)
	}
	if a.open == nil {
		a.open = map[wireIndex]*piece{}
	}
	p := &piece{wireBlock: *b}
	a.blocks = append(a.blocks, p)
	a.open[index] = p // of two blocks with one index, what follows belongs to the second
	switch b.Type {
	case textBlock:
		return p.write(b.Text, model.Delta{Text: b.Text}, yield)
	case thinkingBlock:
		p.sign.WriteString(b.Signature)
		return p.write(b.Thinking, model.Delta{Reasoning: b.Thinking}, yield)
	case toolBlock:
		return a.callPiece(p, "", yield)
	}
	return nil
}

func (a *assembly) delta(index wireIndex, d *wireDelta, yield func(model.Delta, error) bool) error {
	p := a.open[index]
	switch {
	case p == nil:
		return garbled("a %.40q is of block %d, which has not begun", d.Type, index)
	case !knownBlock(p.Type) || !knownDelta(d.Type):
		return nil
	case d.Type == textDelta && p.Type == textBlock:
		return p.write(d.Text, model.Delta{Text: d.Text}, yield)
	case d.Type == thinkingDelta && p.Type == thinkingBlock:
		return p.write(d.Thinking, model.Delta{Reasoning: d.Thinking}, yield)
	case d.Type == signatureDelta && p.Type == thinkingBlock:
		p.sign.WriteString(d.Signature)
		return nil
	case d.Type == inputDelta && p.Type == toolBlock:
		p.text.WriteString(d.PartialJSON)
		return a.callPiece(p, d.PartialJSON, yield)
	default:
		return garbled("a %s cannot be of a block of type %s", d.Type, p.Type)
	}
}

// callPiece shows a call while it is written.
func (a *assembly) callPiece(p *piece, args string, yield func(model.Delta, error) bool) error {
	if p.ID == "" || p.Name == "" {
		return nil
	}
	if !yield(model.Delta{Call: &model.CallPiece{ID: p.ID, Name: a.names.real(p.Name), Arguments: args}}, nil) {
		return errAbandoned
	}
	return nil
}

func (p *piece) write(s string, d model.Delta, yield func(model.Delta, error) bool) error {
	if s == "" {
		return nil
	}
	p.text.WriteString(s)
	if !yield(d, nil) {
		return errAbandoned
	}
	return nil
}

// count keeps the highest counts: the API counts up, and not every event holds every count.
func (a *assembly) count(u *wireUsage) {
	a.usage.Input = max(a.usage.Input, u.Input)
	a.usage.Output = max(a.usage.Output, u.Output)
	a.usage.CacheRead = max(a.usage.CacheRead, u.CacheRead)
	a.usage.CacheWrite = max(a.usage.CacheWrite, u.CacheWrite)
	a.usage.Details.Thinking = max(a.usage.Details.Thinking, u.Details.Thinking)
}

// maxCount is more tokens than there are, and small enough to be added up.
const maxCount = 1 << 40

func (u *wireUsage) ours() messages.Usage {
	read, write := min(u.CacheRead, maxCount), min(u.CacheWrite, maxCount)
	out := messages.Usage{
		Input: min(u.Input, maxCount) + read + write, Output: min(u.Output, maxCount),
		CacheRead: read, CacheWrite: write, Reasoning: min(u.Details.Thinking, maxCount),
	}
	out.Total = out.Input + out.Output
	return out
}

// reply judges what came. The reason to stop is derived: gateways get it wrong.
func (a *assembly) reply(r model.Request, limit int) (*model.Reply, error) {
	out := &model.Reply{
		Message: messages.Message{Role: messages.RoleAssistant}, Stop: stopReason(a.reason),
		Usage: a.usage.ours(), Provider: family, Model: first(a.model, r.Model),
	}
	half, nameless, ids := false, false, map[string]bool{}
	for _, p := range a.blocks {
		b, ok := p.block(a.names)
		switch {
		case p.Type == toolBlock && out.Stop != messages.StopEnd: // it may have lost its end, and the next ones are missing
		case b != nil:
			half = half || !ok
			if c := b.ToolCall; c != nil {
				nameless = nameless || c.Name == ""
				if c.ID == "" || ids[c.ID] { // a gateway's doing: results could not be told apart
					c.ID = "call_" + rand.Text()[:16]
				}
				ids[c.ID] = true
			}
			out.Message.Content = append(out.Message.Content, *b)
		}
	}
	switch {
	case half && out.Usage.Output >= int64(limit):
		out.Stop = messages.StopLength
		out.Message.Content = withoutCalls(out.Message.Content)
	case nameless:
		return nil, garbled("the reply ends within a tool call")
	case len(out.Message.Calls()) > 0:
		out.Stop = messages.StopToolCalls
	case out.Stop == messages.StopEnd && strings.EqualFold(a.reason, "tool_use"):
		return nil, garbled("the reply says that it calls a tool, and holds no call")
	}
	return out, nil
}

func withoutCalls(blocks []messages.Block) []messages.Block {
	var out []messages.Block
	for _, b := range blocks {
		if b.ToolCall == nil {
			out = append(out, b)
		}
	}
	return out
}

// block returns nil for a block that says nothing or is not known, and false for half a call.
func (p *piece) block(n names) (*messages.Block, bool) {
	switch p.Type {
	case textBlock:
		if p.text.Len() > 0 {
			return &messages.Block{Text: p.text.String()}, true
		}
	case thinkingBlock:
		if p.text.Len()+p.sign.Len() > 0 {
			return &messages.Block{Reasoning: &messages.Reasoning{Family: family, Text: p.text.String(), Signature: p.sign.String()}}, true
		}
	case redactedBlock:
		if p.Data != "" {
			return &messages.Block{Reasoning: &messages.Reasoning{Family: family, Opaque: p.Data}}, true
		}
	case toolBlock:
		call, ok := p.call(n)
		return &messages.Block{ToolCall: call}, ok
	}
	return nil, true
}

// call returns false for half a call. Arguments that are not JSON, or end too soon, are handed on: the model is told, and
// can correct them.
func (p *piece) call(n names) (*messages.ToolCall, bool) {
	args := strings.TrimSpace(p.text.String())
	if args == "" {
		args = strings.TrimSpace(string(p.Input)) // all at once, as in a reply that is not streamed
	}
	if args == "" || args == "null" {
		args = "{}"
	}
	var v json.RawMessage
	err := json.NewDecoder(strings.NewReader(args)).Decode(&v)
	return &messages.ToolCall{ID: p.ID, Name: n.real(p.Name), Arguments: args}, p.Name != "" && !errors.Is(err, io.ErrUnexpectedEOF)
}

// stopReason translates the API's reasons, and those of gateways that let their own through. A reason to call tools
// becomes an end here: only a call makes it one. A paused turn is not complete, and nothing here continues with it.
func stopReason(raw string) messages.StopReason {
	switch strings.ToLower(raw) {
	case "max_tokens", "model_context_window_exceeded", "length", "pause_turn":
		return messages.StopLength
	case "refusal":
		return messages.StopRefusal
	case "content_filter", "content_filtered", "safety":
		return messages.StopContentFilter
	case "error":
		return messages.StopError
	default: // end_turn, stop_sequence, tool_use
		return messages.StopEnd
	}
}
