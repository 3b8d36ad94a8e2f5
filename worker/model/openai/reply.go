package openai

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"strings"

	api "github.com/sashabaranov/go-openai"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
)

// assembly puts a reply together from canonical chunks.
type assembly struct {
	text  strings.Builder
	calls []*pieces
}

type pieces struct {
	id, name string
	args     strings.Builder
}

// add returns the text of the chunk.
func (a *assembly) add(c api.ChatCompletionStreamResponse) string {
	if len(c.Choices) == 0 {
		return ""
	}
	d := &c.Choices[0].Delta
	a.text.WriteString(d.Content)
	for i := range d.ToolCalls {
		t := &d.ToolCalls[i]
		if *t.Index == len(a.calls) {
			a.calls = append(a.calls, &pieces{})
		}
		p := a.calls[*t.Index]
		if t.ID != "" {
			p.id = t.ID
		}
		if t.Function.Name != "" {
			p.name = t.Function.Name
		}
		p.args.WriteString(t.Function.Arguments)
	}
	return d.Content
}

// reply judges what came. The reason to stop is derived: what providers say is often wrong.
func (a *assembly) reply(r model.Request, x *exchange) (*model.Reply, error) {
	stop := stopReason(x)
	msg := messages.Message{Role: messages.RoleAssistant}
	if a.text.Len() > 0 {
		msg.Content = messages.TextContent(a.text.String())
	}
	half := false
	if stop != messages.StopLength { // else the last call may have lost its end, and the next ones are missing
		for _, p := range a.calls {
			call, ok := p.call()
			if half = half || !ok; ok {
				msg.Content = append(msg.Content, messages.Block{ToolCall: call})
			}
		}
	}
	switch {
	case len(msg.Calls()) > 0:
		stop = messages.StopToolCalls
	case half && r.MaxTokens > 0 && x.usage.Output >= int64(r.MaxTokens):
		stop = messages.StopLength
	case half:
		return nil, a.invalid(x, "the reply ends within a tool call")
	case x.finish == "" && a.text.Len() == 0:
		return nil, a.invalid(x, "the reply is empty and gives no reason for it")
	}
	out := &model.Reply{Message: msg, Stop: stop, Usage: x.usage, Provider: family, Model: x.model}
	if out.Model == "" {
		out.Model = r.Model
	}
	return out, nil
}

func (a *assembly) invalid(x *exchange, detail string) error {
	return &model.Error{Class: model.ModelOutput, Status: x.status, Detail: detail, RequestID: x.requestID}
}

// call returns false for half a call. Arguments that are no JSON, but whole, are handed on: the model is told.
func (p *pieces) call() (*messages.ToolCall, bool) {
	args := strings.TrimSpace(p.args.String())
	if args == "" || args == "null" {
		args = "{}"
	}
	var v json.RawMessage
	err := json.NewDecoder(strings.NewReader(args)).Decode(&v)
	if p.name == "" || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, false
	}
	id := p.id
	if id == "" {
		id = "call_" + rand.Text()[:16]
	}
	return &messages.ToolCall{ID: id, Name: p.name, Arguments: args}, true
}

// stopReason translates the reasons that are known to occur, of other protocols too. A reason to call tools becomes
// an end here: only a call makes it one.
func stopReason(x *exchange) messages.StopReason {
	switch strings.ToLower(x.finish) {
	case "length", "max_tokens", "model_length", "max_output_tokens":
		return messages.StopLength
	case "content_filter", "content_filtered", "safety", "prohibited_content", "blocklist", "spii", "recitation", "sensitive":
		return messages.StopContentFilter
	case "refusal":
		return messages.StopRefusal
	}
	if x.refused {
		return messages.StopRefusal
	}
	return messages.StopEnd
}
